"""Reports of single nodes as one: nothing of the files is lost, and nodes that differ are named as in one run."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Outcome
from ncclcheck.model.report import Advice, Report
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.report.build import build_report
from ncclcheck.report.fleet.merge import Unread, merged
from ncclcheck.report.formats import rendered
from tests.builders import cluster
from tests.fact_builders import some
from tests.report.fleet.prometheus import value
from tests.report.hostile import reports

EVERYTHING = Selection()


def alone(node: Node, selection: Selection = EVERYTHING, **options: Any) -> Report:
    """What `ncclcheck node` reports of this node."""
    launch = replace(some(node.facts.launch), source="none", nnodes=1, world_size=1, node_rank=0, rank=0)
    own = Node(node.host, 0, replace(node.facts, launch=launch))
    snapshot = Snapshot(nodes=(own,), claims=(launch,), claim_hosts=(node.host,))
    snapshot = replace(snapshot, expected_gpus_per_node=options.pop("gpus", None))
    given = {
        "command": "node",
        "created": "2026-11-22T12:00:00+00:00",
        "elapsed_s": 1.0,
        "fail_on": "error",
        "require": (),
        "interrupted": False,
    }
    return build_report(snapshot, run_checks(snapshot, selection), Advice(), **{**given, **options})


def with_torch(node: Node, version: str) -> Node:
    return replace(
        node, facts=replace(node.facts, software=replace(some(node.facts.software), torch=version))
    )


def outcomes(report: Report) -> dict[str, Outcome]:
    return {entry.slug: entry.outcome for entry in report.checks}


def findings(report: Report) -> dict[str, tuple[str, ...]]:
    return {finding.slug: finding.hosts for finding in report.findings}


def test_equal_nodes_are_a_fleet_without_findings() -> None:
    fleet = merged([alone(node) for node in cluster(4).nodes])
    assert fleet.verdict.exit_code == 0
    assert [node.host for node in fleet.nodes] == ["node01", "node02", "node03", "node04"]
    assert [node.node_rank for node in fleet.nodes] == [0, 1, 2, 3]
    assert outcomes(fleet)["version-differs"] == "passed"  # it compares; one node alone it does not apply to
    assert outcomes(fleet)["peer-filtered"] == "not_applicable"  # nobody tried
    assert fleet.fleet is not None
    assert fleet.fleet.reports == 4


def test_a_node_that_differs_is_named_as_in_one_run() -> None:
    nodes = list(cluster(4).nodes)
    nodes[2] = with_torch(nodes[2], "2.5.1")
    fleet = merged([alone(node) for node in nodes])
    together = run_checks(replace(cluster(4), nodes=tuple(nodes)), Selection(select=("version-differs",)))
    wanted = [finding for run in together for finding in run.findings]
    assert [finding for finding in fleet.findings if finding.slug == "version-differs"] == wanted
    assert fleet.verdict.exit_code == 1
    row = next(row for row in fleet.fleet.checks if row.slug == "version-differs")  # type: ignore[union-attr]
    assert (row.found, row.found_on) == (1, ("node03",))


def test_what_a_file_found_stays_and_counts_once() -> None:
    nodes = cluster(3).nodes
    fleet = merged([alone(nodes[0]), alone(nodes[1], gpus=64), alone(nodes[2])])
    (finding,) = [finding for finding in fleet.findings if finding.slug == "gpu-count"]
    assert finding.hosts == ("node02",)
    assert outcomes(fleet)["gpu-count"] == "found"
    again = merged([fleet])
    assert findings(again) == findings(fleet)
    assert again.verdict.exit_code == fleet.verdict.exit_code == 1


def test_an_inconclusive_node_makes_the_fleet_inconclusive_and_is_named() -> None:
    nodes = list(cluster(3).nodes)
    late = Missing("timeout", "NVML hangs")
    nodes[1] = replace(nodes[1], facts=replace(nodes[1].facts, gpus=late))
    fleet = merged([alone(node) for node in nodes])
    assert fleet.verdict.exit_code == 3
    assert any("node02" in reason and "NVML hangs" in reason for reason in fleet.verdict.reasons)
    assert outcomes(fleet)["gpu-ecc"] == "unknown"
    row = next(row for row in fleet.fleet.checks if row.slug == "gpu-ecc")  # type: ignore[union-attr]
    assert (row.passed, row.unknown, row.unknown_on) == (2, 1, ("node02",))


def test_a_bug_on_one_node_and_a_file_that_is_none_are_no_pass() -> None:
    good = alone(cluster(1).nodes[0])
    assert merged([good, alone(cluster(2).nodes[1], bug="KeyError")]).verdict.exit_code == 3
    fleet = merged([good], [Unread("a.json", "damaged"), Unread("b.json", "damaged")])
    assert fleet.verdict.exit_code == 3
    assert fleet.verdict.reasons == ("no report in a.json: damaged, and 1 file more",)
    assert merged([]).verdict.exit_code == 3


def test_of_two_reports_about_a_node_the_newer_one_counts() -> None:
    node = cluster(1).nodes[0]
    bad = alone(node, gpus=64, created="2026-11-22T11:00:00+00:00")
    good = alone(node, created="2026-11-22T12:00:00+00:00")
    assert merged([good, bad]).verdict.exit_code == merged([bad, good]).verdict.exit_code == 0
    assert merged([replace(good, created="2026-11-22T10:00:00+00:00"), bad]).verdict.exit_code == 1


def test_what_the_files_demote_or_ignore_stays_so() -> None:
    nodes = [with_torch(node, "2.5.1") if node.host == "node03" else node for node in cluster(3).nodes]
    ignored = merged([alone(node, Selection(ignore=("version-differs",))) for node in nodes])
    assert outcomes(ignored)["version-differs"] == "ignored"
    assert ignored.verdict.exit_code == 0
    demoted = alone(nodes[0], Selection(demote=("gpu-count",)), gpus=64)
    assert merged([demoted, alone(nodes[1])]).verdict.exit_code == 0


def test_the_order_of_the_files_does_not_matter() -> None:
    nodes = [with_torch(node, "2.5.1") if node.host == "node03" else node for node in cluster(4).nodes]
    made = [alone(node) for node in nodes]
    assert encode(merged(made)) == encode(merged(made[::-1]))


@settings(max_examples=25, deadline=None)
@pytest.mark.slow
@given(st.lists(reports(), min_size=1, max_size=3))
def test_no_finding_of_any_file_is_lost_whatever_machines_call_themselves(made: list[Report]) -> None:
    for number, report in enumerate(made):  # of different nodes
        hosts = {node.host: f"{number}-{node.host}" for node in report.nodes}
        made[number] = replace(
            report, nodes=tuple(replace(node, host=hosts[node.host]) for node in report.nodes)
        )
    fleet = merged(made)
    told = {(finding.slug, host) for finding in fleet.findings for host in finding.hosts}
    assert {
        (finding.slug, host) for report in made for finding in report.findings for host in finding.hosts
    } <= told
    for format_ in ("text", "json", "junit", "md", "github", "prom"):
        assert rendered(fleet, format_)
    if any(report.verdict.exit_code != 0 for report in made):
        assert fleet.verdict.exit_code != 0


def test_every_format_has_the_table() -> None:
    nodes = [with_torch(node, "2.5.1") if node.host == "node03" else node for node in cluster(4).nodes]
    fleet = merged([alone(node) for node in nodes])
    text = rendered(fleet, "text")
    assert "fleet: 4 reports, 2026-11-22T12:00:00+00:00" in text
    assert "found on node03" in text
    assert "authenticated" not in text  # the nodes never met
    assert "| version-differs | 0 | 1 | 0 | `found on node03` |" in rendered(fleet, "md")
    page = rendered(fleet, "html")
    assert 'id="fleet"' in page
    assert "found on node03" in page
    assert decode(rendered(fleet, "json"), Report) == fleet
    assert json.loads(rendered(fleet, "json"))["fleet"]["reports"] == 4
    assert value(rendered(fleet, "prom"), "nodes", status="reported") == 4


@pytest.mark.slow
def test_a_thousand_nodes_take_little_more_than_their_checks() -> None:
    first = [alone(node) for node in cluster(8).nodes]
    many = []
    for number in range(1000):
        report = first[number % 8]
        host = f"gpu{number:04}"
        node = replace(report.nodes[0], host=host)
        many.append(replace(report, nodes=(node,)))
    started = time.monotonic()
    fleet = merged(many)
    assert time.monotonic() - started < 60  # seconds on a quiet machine; quadratic work would take minutes
    assert len(fleet.nodes) == 1000
