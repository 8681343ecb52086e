"""The whole page: header, findings, verdict in the last line; the same for pipes, terminals and NO_COLOR."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from ncclcheck.model.report import Report
from ncclcheck.report.text.terminal import render
from tests.bench_builders import with_bench
from tests.builders import cluster, seen_alone, with_facts, with_silent
from tests.fact_builders import launch
from tests.report.reports import ADVICE, check_run, finding, found, mtu_finding, report

SICK = report(
    [
        found(mtu_finding()),
        check_run("node-silent", code="NC101"),
        check_run("gpu-count", "unknown", "w", code="NC401"),
    ],
    advice=ADVICE,
)


def test_the_header_says_what_was_looked_at() -> None:
    assert (
        render(report()).splitlines()[0]
        == "ncclcheck 0.1.0 · preflight · 4 nodes · nodes given on the command line · NCCL 2.27.5"
    )


def test_silent_nodes_are_in_the_header() -> None:
    header = render(report(snapshot=with_silent(cluster(4), "node04"))).splitlines()[0]
    assert "4 nodes, 1 silent" in header


def test_a_node_alone_says_that_it_saw_only_itself() -> None:
    assert "1 of 4 nodes, seen from node02 alone" in render(report(snapshot=seen_alone(cluster(4), "node02")))


def test_a_node_alone_that_was_told_its_rank_knows_only_the_most_nodes_there_can_be() -> None:
    alone = seen_alone(cluster(4), "node02")
    (node,) = alone.nodes
    uncounted = replace(launch(1, 4), told="local-rank")
    facts = replace(node.facts, launch=uncounted)
    alone = replace(alone, nodes=(replace(node, facts=facts),), claims=(uncounted,))
    assert "1 of at most 4 nodes, seen from node02 alone" in render(report(snapshot=alone))


def test_without_a_launcher_it_says_that_one_node_was_looked_at() -> None:
    one = cluster(1)
    launch = replace(one.nodes[0].facts.launch, source="none")
    text = render(report(snapshot=with_facts(one, "node01", launch=launch)))
    assert text.splitlines()[:2] == [
        "ncclcheck 0.1.0 · preflight · 1 node · no launcher · NCCL 2.27.5",
        "No launcher and no --nnodes: only this node was looked at.",
    ]


@pytest.mark.parametrize("width", [None, 40, 80])
@pytest.mark.parametrize("verbose", [0, 1])
def test_the_last_line_is_the_exit_code_and_its_reason(width: int | None, verbose: int) -> None:
    text = render(SICK, width=width, verbose=verbose)
    assert text.splitlines()[-1] == "exit 1: 1 error: mtu-differs on node[02-03]"
    assert text.endswith("\n")


def test_further_reasons_stand_above_the_last_line() -> None:
    both = report([found(mtu_finding())], snapshot=with_silent(cluster(4), "node04"))
    assert render(both).splitlines()[-2:] == [
        "also: 1 node did not report: node04",
        "exit 1: 1 error: mtu-differs on node[02-03]",
    ]


def test_the_summary_counts_unknown_apart_from_passed() -> None:
    assert "3 checks: 1 passed, 1 error, 1 unknown · 3.1 s" in render(SICK)


def test_a_pass_is_said_in_words() -> None:
    assert render(report()).splitlines()[-1] == "exit 0: no errors: 1 check passed"


def test_without_colour_there_is_no_escape_and_with_colour_the_words_are_the_same() -> None:
    plain_text, coloured = render(SICK), render(SICK, color=True)
    assert "\x1b" not in plain_text
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain_text


def test_a_pipe_gets_every_word_whole() -> None:
    slow = report(snapshot=with_bench(cluster(4)), command="bench", advice=ADVICE)
    narrow = " ".join(render(slow, width=60).split())
    assert narrow == " ".join(render(slow).split())


def test_data_of_other_nodes_cannot_fake_a_line_or_steer_the_terminal() -> None:
    evil = finding("x-y", "node01\nexit 0: fine", summary="\x1b[2J[red]all fine[/red]\nexit 0: no errors")
    text = render(report([found(evil)]))
    assert "\x1b" not in text
    assert "[red]all fine[/red]" in text
    assert [line for line in text.splitlines() if line.startswith("exit")] == text.splitlines()[-1:]


def test_the_same_report_gives_the_same_text() -> None:
    reports: list[Report] = [SICK, report(snapshot=with_bench(cluster(4)))]
    assert [render(one, verbose=1) for one in reports] == [render(one, verbose=1) for one in reports]


def test_how_many_pairs_were_tried_is_told() -> None:
    assert "reach: 12 of 12 directed pairs of nodes (all pairs)" in render(report())
