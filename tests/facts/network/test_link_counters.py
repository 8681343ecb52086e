"""The counters of interfaces in trees of /sys, and of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.facts.network.link_counters import read_link_counters, read_links_again, with_counts
from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import LinkCounters
from tests.builders import cluster, node
from tests.fact_builders import some
from tests.facts.trees import Tree

NET = "sys/class/net"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "root")


def test_cards_and_interfaces_with_an_address_are_read(tree: Tree) -> None:
    tree.files(
        f"{NET}/eth0", {"carrier_changes": "3", "device/vendor": "0x15b3", "statistics/rx_errors": "7"}
    )
    tree.files(f"{NET}/vlan7", {"carrier_changes": "1"})
    tree.files(f"{NET}/veth1", {"carrier_changes": "9"})
    first, second = some(
        read_link_counters(tree.root, {"vlan7"}, lambda name: {"bad_fcs": 1} if name == "eth0" else {})
    )
    assert (first.interface, first.before) == ("eth0", {"bad_fcs": 1, "carrier_changes": 3, "rx_errors": 7})
    assert (second.interface, second.before) == ("vlan7", {"carrier_changes": 1})


def test_zeros_are_left_out_unless_they_are_wanted(tree: Tree) -> None:
    tree.files(f"{NET}/eth0", {"carrier_changes": "0", "device/vendor": "1", "statistics/rx_errors": "0"})
    (short,) = some(read_link_counters(tree.root, (), lambda _: {"bad_fcs": 0}))
    assert short.before == {"carrier_changes": 0}
    (full,) = some(read_link_counters(tree.root, (), lambda _: {"bad_fcs": 0}, zeros=True))
    assert full.before == {"bad_fcs": 0, "carrier_changes": 0, "rx_errors": 0}


def test_without_sys_nothing_is_known(tree: Tree) -> None:
    assert isinstance(read_link_counters(tree.root), Missing)


def test_this_machine_is_read_twice() -> None:
    first = read_links_again()
    assert isinstance(first, tuple), first
    assert all(link.interface != "lo" for link in first)


def test_the_second_reading_goes_to_its_interface() -> None:
    (before,) = some(node(cluster(2), "node01").facts.link_counters)
    now = (LinkCounters("eth0", {"carrier_changes": 9}),)
    (read,) = some(with_counts(node(cluster(2), "node01"), {"node01": now}).facts.link_counters)
    assert (read.before, read.after) == (before.before, {"carrier_changes": 9})
    (read,) = some(with_counts(node(cluster(2), "node01"), {"node01": ()}).facts.link_counters)
    assert isinstance(read.after, Missing)
    late = Missing("timeout", "late")
    (read,) = some(with_counts(node(cluster(2), "node01"), {"node01": late}).facts.link_counters)
    assert read.after == late
