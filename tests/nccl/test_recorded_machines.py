"""The model on every machine recorded beside the project: HCA ports, GID indexes, distances."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.facts.recorded import read_recorded
from ncclcheck.nccl.explanation import explain
from ncclcheck.nccl.prediction import Prediction
from tests.fact_builders import some

SYSROOTS = Path(__file__).parents[3] / "shared" / "sysroots"
TREES = sorted(path.parent for path in SYSROOTS.glob("*/expected.json"))
pytestmark = pytest.mark.skipif(not TREES, reason=f"no recorded machines in {SYSROOTS}")
each_tree = pytest.mark.parametrize("tree", TREES, ids=lambda path: str(path.name))


@cache
def expected(tree: Path) -> dict[str, Any]:
    found = json.loads((tree / "expected.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@cache
def predicted(tree: Path) -> Prediction:
    return some(explain(read_recorded(tree).facts, expected(tree)["nccl"]["version"]))


def accepts(wanted: Any, found: object) -> bool:
    """`{"any_of": [...]}` lists all that is right; the order of lists says nothing; null is not told."""
    if isinstance(wanted, dict) and "any_of" in wanted:
        return any(accepts(one, found) for one in wanted["any_of"])
    if isinstance(wanted, list) and isinstance(found, list):
        return sorted(wanted) == sorted(found)
    return bool(wanted == found)


@each_tree
def test_the_ports_nccl_would_use(tree: Path) -> None:
    choice = predicted(tree)
    ports = None if choice.network is None else [f"{hca.device}:{hca.port}" for hca in choice.hcas]
    assert accepts(expected(tree)["nccl"]["hca_ports"], ports), choice.network_reason


@each_tree
def test_their_gid_index(tree: Path) -> None:
    found = {f"{hca.device}:{hca.port}": hca.gid_index for hca in predicted(tree).hcas}
    wanted = expected(tree)["nccl"]["gid_index"]
    assert not {name: found.get(name) for name in wanted if not accepts(wanted[name], found.get(name))}


@each_tree
def test_the_distance_of_gpus_and_nics(tree: Path) -> None:
    wanted = {
        (gpu, nic): path.split("|")
        for gpu, nics_at in (expected(tree)["gpu_nic_distance"] or {}).items()
        for path, nics in nics_at.items()
        for nic in nics
    }
    found = {(gpu_nic.gpu, gpu_nic.nic): gpu_nic.distance for gpu_nic in predicted(tree).gpu_nic}
    assert found.keys() == wanted.keys()
    assert not {pair: path for pair, path in found.items() if path not in wanted[pair]}


@each_tree
def test_no_failure_is_claimed_where_only_addresses_are_not_told(tree: Path) -> None:
    choice = predicted(tree)
    assert (choice.interface, choice.fails) == (None, False)
    assert "the interface is not known" in choice.reason
