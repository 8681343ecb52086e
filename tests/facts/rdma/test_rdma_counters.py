"""Error counters of RDMA ports in trees of /sys, and of this machine a second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.rdma.rdma_counters import read_again, read_rdma_counters
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import PortCounters
from tests.fact_builders import some
from tests.facts.trees import Tree

PORT = "sys/class/infiniband/mlx5_0/ports/1"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def port(tree: Tree) -> PortCounters:
    (one,) = some(read_rdma_counters(tree.root)).ports
    return one


def test_counters_of_errors_are_read_from_both_folders_and_traffic_is_not(tree: Tree) -> None:
    tree.files(f"{PORT}/counters", {"symbol_error": "7", "port_rcv_data": "123", "VL15_dropped": "3"})
    tree.files(
        f"{PORT}/hw_counters",
        {"out_of_sequence": "18446744073709551615", "req_cqe_flush_error": "9", "lifespan": "10"},
    )
    one = port(tree)
    assert (one.device, one.port) == ("mlx5_0", 1)
    assert one.before == {"symbol_error": 7, "out_of_sequence": (1 << 64) - 1}
    assert one.after == Missing("absent", "read once only: what grows shows at the end of a run")


@pytest.mark.parametrize("text", ["x", "-1", "18446744073709551616", "1 2", ""])
def test_a_damaged_counter_is_missing_and_the_others_stay(tree: Tree, text: str) -> None:
    tree.files(f"{PORT}/counters", {"symbol_error": text, "link_downed": "1"})
    before = some(port(tree).before)
    assert isinstance(before["symbol_error"], Missing)
    assert before["link_downed"] == 1


def test_a_counter_that_the_card_does_not_have_is_left_out(tree: Tree) -> None:
    tree.files(f"{PORT}/counters", {"symbol_error": "N/A (no PMA)", "link_downed": "1"})
    assert port(tree).before == {"link_downed": 1}


def test_a_port_without_counters_says_so(tree: Tree) -> None:
    tree.files(PORT, {"state": "4: ACTIVE"})
    assert port(tree).before == Missing("absent", f"/{PORT}: no counter of errors")


def test_a_machine_without_rdma_has_no_ports_and_one_without_class_tells_nothing(tree: Tree) -> None:
    assert isinstance(read_rdma_counters(tree.root), Missing)
    (tree.root / "sys/class/net").mkdir(parents=True)
    assert some(read_rdma_counters(tree.root)).ports == ()


def test_a_second_reading_is_like_the_first(tree: Tree) -> None:
    tree.files(f"{PORT}/counters", {"symbol_error": "7"})
    assert read_again(20.0, tree.root) == some(read_rdma_counters(tree.root)).ports
