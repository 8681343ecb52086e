"""What holds for every check: silent on a healthy cluster, documented, tested, and never passed without its facts."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.checks.registry import Check, all_checks, run_check
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Silent, Snapshot
from tests.bench_builders import with_bench
from tests.builders import seen_alone, with_silent, without
from tests.fact_builders import GONE
from tests.hardware_builders import rdma_cluster as cluster

# Those of images are silent about nodes: test_images.py.
CHECKS = [check for check in all_checks() if check.image != "only"]
SECTIONS = ("## Why it matters", "## How to fix", "## Source")
TESTS = Path(__file__).parent
# The others judge what was measured, or what single nodes said of their own torch.
NOT_OF_NODES = ("torch-unusable", "exception-expired")
# They judge what this cluster did not do: a start by c10d or ssh, a meeting in a folder, isolate, --checkpoint, --mesh.
# Their tests do.
ON_REQUEST = (
    "rendezvous-host", "rendezvous-name", "host-unreachable", "meeting-place", "authenticated",
    "oversubscribed", "link-outlier", "row-slow", "topology-differs", "rail-slow",
    "rail-swapped", "leaf-uplink-slow", "host-order",
    "node-slow", "node-hangs", "node-intermittent", "link-slow", "group-slow", "slow-in-company",
    "slow-at-scale", "rendezvous-id", "checkpoint-incomplete", "checkpoint-differs", "mesh-placement", "mesh-mismatch",
    "group-slow-in-mesh", "mesh-wrong-data", "soak-drop", "soak-tail", "link-flap", "soak-wrong-data",
    "setting-fails", "setting-wrong-data", "setting-trade",
)  # fmt: skip
ABOUT_NODES = [
    check for check in CHECKS if check.code[:3] != "NC8" and check.slug not in (*NOT_OF_NODES, *ON_REQUEST)
]


def by_slug(check: Check) -> str:
    return check.slug


def by_slug_or_text(one: Check | str) -> str:
    return one if isinstance(one, str) else one.slug


@pytest.mark.parametrize("nnodes", [2, 4, 9])
@pytest.mark.parametrize("check", CHECKS, ids=by_slug)
def test_a_healthy_cluster_passes_without_a_word(check: Check, nnodes: int) -> None:
    result = run_check(check, with_bench(cluster(nnodes)))
    if nnodes < check.nodes or check.slug in ON_REQUEST:
        assert result.outcome == "not_applicable"
        assert result.reason
    else:
        assert (result.outcome, result.reason, result.findings) == ("passed", "", ())


@pytest.mark.parametrize("check", CHECKS, ids=by_slug)
def test_a_healthy_single_node_gives_no_finding(check: Check) -> None:
    assert run_check(check, cluster(1)).outcome in {"passed", "not_applicable"}


@pytest.mark.parametrize(
    ("one", "section"), [(check, section) for check in CHECKS for section in check.needs], ids=by_slug_or_text
)
def test_without_a_section_it_needs_it_never_passes(one: Check, section: str) -> None:
    result = run_check(one, without(cluster(4), "node03", section))
    assert result.outcome == "unknown"
    assert "node03" in result.reason


@pytest.mark.parametrize(
    ("check", "part"), list(product(CHECKS, ("probes", "coverage", "bench"))), ids=by_slug_or_text
)
def test_without_a_part_of_the_snapshot_nothing_is_found(check: Check, part: str) -> None:
    broken = replace(with_bench(cluster(4)), **{part: Missing("error", "lost")})
    silent = {"not_applicable"} if check.slug in ON_REQUEST else {"passed", "unknown"}
    assert run_check(check, broken).outcome in silent


@pytest.mark.parametrize("check", ABOUT_NODES, ids=by_slug)
def test_a_node_without_a_word_keeps_it_from_passing(check: Check) -> None:
    assert run_check(check, with_silent(cluster(4), "node03")).outcome in {"unknown", "found"}


@pytest.mark.parametrize("check", ABOUT_NODES, ids=by_slug)
def test_a_node_that_met_nobody_passes_nothing_about_the_others(check: Check) -> None:
    result = run_check(check, seen_alone(cluster(4), "node03"))
    assert result.outcome in {"unknown", "not_applicable"}


@pytest.mark.parametrize("check", CHECKS, ids=by_slug)
def test_with_nothing_at_all_it_does_not_pass(check: Check) -> None:
    assert run_check(check, Snapshot(nodes=())).outcome in {"unknown", "not_applicable"}


@pytest.mark.parametrize("check", CHECKS, ids=by_slug)
def test_it_does_not_crash_where_every_section_is_missing(check: Check) -> None:
    broken = cluster(3)
    for node in broken.nodes:
        for section in node.facts.__struct_fields__:
            broken = without(broken, node.host, section, GONE)
    assert run_check(check, broken).outcome != "crashed"


@pytest.mark.parametrize("check", all_checks(), ids=by_slug)
def test_its_manual_has_all_sections(check: Check) -> None:
    summary = check.manual.partition("\n\n")[0]
    assert summary
    assert not summary.startswith("#")
    assert [section for section in SECTIONS if section not in check.manual] == []
    assert check.title


@pytest.mark.parametrize("check", all_checks(), ids=by_slug)
def test_it_lives_in_a_file_of_its_slug_and_has_a_test(check: Check) -> None:
    family, name = check.body.__module__.split(".")[-2:]
    assert name == check.slug.replace("-", "_")
    assert (TESTS / family / f"test_{name}.py").is_file()


def test_the_healthy_cluster_survives_json() -> None:
    healthy = with_bench(cluster(4))
    assert decode(encode(healthy), Snapshot) == healthy


UNTIL_THE_END = ("node-silent", "message-refused", "place-contested", "store-changed", "node-stood-still")


def test_what_a_node_told_before_it_fell_silent_stays_known() -> None:
    later = replace(with_bench(cluster(4)), silent=(Silent("node03", 2, "end", 6.0),))
    before = {check.slug: run_check(check, with_bench(cluster(4))).outcome for check in CHECKS}
    after = {check.slug: run_check(check, later).outcome for check in CHECKS}
    changed = {slug for slug, outcome in after.items() if outcome != before[slug]}
    assert changed == set(UNTIL_THE_END)
