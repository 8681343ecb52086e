"""The table of isolate."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.benchmarks.isolation import BadGroup, BadLink, Unheard
from ncclcheck.model.exit_code import UNKNOWN
from ncclcheck.report.text.terminal import render
from tests.isolation_builders import HUNG, SLOW, isolate_report
from tests.report.test_node_lists import namesakes


def test_named_nodes_stand_in_a_table_with_lines_to_paste() -> None:
    text = render(isolate_report(nodes=(HUNG, SLOW)))
    assert "pairs: 2 of 6 were tested in 1 round (--seed 7); usual: 10 Gbit/s each way" in text
    assert "node03  slow     80%    100%      10 Gbit/s  3      0.0001" in text
    assert "srun --exclude='node[02-03]'" in text
    assert "--hosts 'node[01,04]'" in text
    assert "scontrol update NodeName=node03 State=DRAIN" in text
    assert "kubectl cordon node03" in text
    assert "--print hostfile" in text


def test_links_groups_and_the_undecided_are_listed() -> None:
    text = render(
        isolate_report(
            links=(BadLink("node01", "node02", "blocked"),),
            groups=(BadGroup(("node01", "node02", "node03"), "slow_together"),),
            undecided=("node04",),
        )
    )
    assert "path from node01 to node02: blocked" in text
    assert "group node[01-03]: slow together" in text
    assert "undecided: node04" in text
    assert "without them" not in text


def test_a_name_that_would_be_a_command_is_in_no_line_to_paste() -> None:
    evil = "$(reboot)"
    made = isolate_report(nodes=(HUNG, replace(SLOW, host=evil)))
    text = render(replace(made, nodes=(*made.nodes, replace(made.nodes[0], host=evil))))
    below = text[text.index("without them") : text.index("exit 4")]
    lines = [line for line in below.splitlines() if evil in line]
    assert lines == [f"  in none of these lines, since they are no host names: {evil}"]


def test_the_verdict_says_why_silent_nodes_are_not_named() -> None:
    unheard = Unheard(("node02", "node03", "node04"), "most")
    report = isolate_report(undecided=unheard.hosts, unheard=unheard)
    assert report.verdict.exit_code == UNKNOWN
    assert "the tests were cut short: node[02-04] fell silent: most nodes" in report.verdict.reasons[0]
    assert "  node[02-04] fell silent: most nodes" in render(report)


def test_nodes_with_one_name_are_told_apart() -> None:
    text = render(namesakes("10.0.0.2", "10.0.0.3"))
    assert "  node#2 (10.0.0.3, node rank 2)  slow " in text
    assert "srun --exclude=10.0.0.3" in text
    assert "node#1 is 10.0.0.2, node rank 1: another node calls itself node" in text
    assert "no host names" not in text
