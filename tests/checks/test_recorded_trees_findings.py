"""Every machine recorded beside the project: what has to be found on it, what may not be, and pairs of them."""

from __future__ import annotations

import json
import shutil
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.checks.registry import Selection, all_checks, run_checks
from ncclcheck.facts.recorded import read_recorded
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import CheckRun, Finding
from ncclcheck.model.snapshot import Node, Snapshot
from tests.further import mostly_further

SYSROOTS = Path(__file__).parents[3] / "shared" / "sysroots"
TREES = sorted(path.parent for path in SYSROOTS.glob("*/expected.json"))
HARDWARE = ("NC3", "NC41")
pytestmark = pytest.mark.skipif(not TREES, reason=f"no recorded machines in {SYSROOTS}")
each_tree = pytest.mark.parametrize("tree", TREES, ids=lambda path: str(path.name))


@cache
def expected(tree: Path) -> dict[str, Any]:
    found = json.loads((tree / "expected.json").read_text(encoding="utf-8"))["findings"]
    assert isinstance(found, dict)
    return found


@cache
def facts(tree: Path) -> NodeFacts:
    """As `facts --root` prints them, read back."""
    return decode(encode(read_recorded(tree).facts), NodeFacts)


@cache
def runs(*trees: Path) -> tuple[CheckRun, ...]:
    """Every check over one job whose nodes are those machines."""
    nodes = tuple(Node(tree.name, rank, facts(tree)) for rank, tree in enumerate(trees))
    return run_checks(Snapshot(nodes=nodes), Selection())


def reported(tree: Path) -> list[Finding]:
    """What is a warning or an error."""
    return [finding for run in runs(tree) for finding in run.findings if finding.severity != "info"]


def names(finding: Finding, wanted: str) -> bool:
    """True if the finding names one of the alternatives."""
    text = json.dumps(json.loads(encode(finding)))
    return any(word in text for word in wanted.split("|"))


@each_tree
def test_what_must_be_reported(tree: Path) -> None:
    known = {check.slug for check in all_checks()}
    for slugs, wanted in expected(tree).get("must", {}).items():
        if not known & set(slugs.split("|")):
            continue  # of a family that is not built yet
        found = [finding for finding in reported(tree) if finding.slug in slugs.split("|")]
        assert found, slugs
        for each in wanted:
            assert any(names(finding, each) for finding in found), (slugs, each, found)


@each_tree
def test_what_may_not_be_reported(tree: Path) -> None:
    unwanted = set(expected(tree).get("must_not", []))
    assert [finding for finding in reported(tree) if finding.slug in unwanted] == []


@each_tree
def test_what_may_be_a_warning_at_most(tree: Path) -> None:
    mild = set(expected(tree).get("not_error", []))
    assert [
        finding for finding in reported(tree) if finding.slug in mild and finding.severity == "error"
    ] == []


@each_tree
def test_no_check_crashes_and_every_finding_is_on_that_host(tree: Path) -> None:
    assert [run for run in runs(tree) if run.outcome == "crashed"] == []
    assert {host for finding in reported(tree) for host in finding.hosts} <= {tree.name}


@pytest.mark.parametrize(
    "pair", list(combinations(TREES, 2)), ids=lambda pair: f"{pair[0].name}+{pair[1].name}"
)
def test_two_machines_in_one_job(pair: tuple[Path, Path]) -> None:
    hardware = [run for run in runs(*pair) if run.code.startswith(HARDWARE)]
    assert [(run.slug, run.reason) for run in runs(*pair) if run.outcome == "crashed"] == []
    for check_run in hardware:
        for finding in check_run.findings:
            assert set(finding.hosts) <= {tree.name for tree in pair}
            assert finding.evidence
            assert finding.fixes
            assert "Missing(" not in json.dumps(json.loads(encode(finding)))


# What is deleted from a machine, and the check that then must not pass. Each passes, or finds something, with it.
DELETED = [
    ("synthetic-h100-ib", "infiniband/mlx5_3/ports/1/state", "rdma-port-down"),
    ("synthetic-h100-ib", "infiniband/mlx5_3/ports/1/state", "rdma-rate-differs"),
    ("synthetic-h100-ib", "infiniband/mlx5_3/ports/1/state", "rdma-ignored"),
    ("synthetic-h100-ib", "infiniband/mlx5_3/ports/1/rate", "rdma-rate-differs"),
    ("synthetic-h100-roce", "infiniband/mlx5_3/ports/1/link_layer", "link-layer-mixed"),
    ("synthetic-h100-roce", "infiniband/mlx5_3/ports/1/link_layer", "rdma-gid"),
    ("synthetic-h100-roce", "infiniband/mlx5_3/ports/1/gids", "rdma-gid"),
    ("synthetic-h100-roce", "infiniband/mlx5_3/ports/1/gid_attrs", "rdma-gid"),
    ("synthetic-a100-mixed-faults", "dev", "rdma-no-device-files"),
    ("synthetic-sriov-container-nodev", "dev", "rdma-no-device-files"),
    ("synthetic-h100-ib", "sys/bus/pci", "gdr-unavailable"),
    ("synthetic-h100-ib", "sys/bus/pci", "pcie-degraded"),
    ("synthetic-h100-ib", "0000:18:00.0/current_link_width", "pcie-degraded"),
    ("synthetic-h100-ib", "0000:18:00.0/max_link_width", "pcie-degraded"),
    ("synthetic-h100-ib", "0000:18:00.0/current_link_speed", "pcie-degraded"),
    ("synthetic-h100-ib", "0000:1b:00.0/current_link_width", "pcie-degraded"),
]


@pytest.mark.parametrize(("name", "path", "slug"), mostly_further(DELETED, 5))  # mark.further
@pytest.mark.parametrize("damage", ["deleted", "damaged"])
def test_without_what_it_reads_a_check_does_not_pass(
    name: str, path: str, slug: str, damage: str, tmp_path: Path
) -> None:
    tree = SYSROOTS / name
    if not tree.is_dir():
        pytest.skip(f"no recorded machine {name}")
    copy = tmp_path / name
    shutil.copytree(tree, copy, symlinks=True)
    places = [
        one for one in copy.rglob(path.rpartition("/")[2]) if one.as_posix().endswith(path) and exists(one)
    ]
    assert places
    for place in places:
        damaged(place, damage)
    node = Node(name, 0, read_recorded(copy).facts)
    (run,) = (check for check in run_checks(Snapshot(nodes=(node,)), Selection()) if check.slug == slug)
    assert run.outcome in {"unknown", "not_applicable", "found"}
    assert run.reason
    assert [
        finding for finding in run.findings if finding.severity != "info" and path in str(finding.evidence)
    ] == []


def exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def damaged(path: Path, how: str) -> None:
    """Deletes it; damaged, a file is full of nonsense, and a folder is a file."""
    is_folder = path.is_dir() and not path.is_symlink()
    if is_folder:
        shutil.rmtree(path)
    else:
        path.unlink()
    if how == "damaged":
        path.write_bytes(b"\xff\x00 \x1b[31m nonsense\n")
