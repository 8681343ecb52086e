"""What a ring over the nodes costs in a given order."""

from __future__ import annotations

import pytest

from ncclcheck.measure.matrix.ring_order import ring_order
from ncclcheck.model.benchmarks.matrix import Oversubscription
from tests.matrix_builders import HOSTS, LEAVES, fabric

ALTERNATING = (HOSTS[0], HOSTS[2], HOSTS[1], HOSTS[3])


def test_a_flat_network_has_no_hops_between_leaves() -> None:
    assert ring_order(HOSTS, fabric()) is None
    assert ring_order(HOSTS[:2], fabric(leaves=LEAVES)) is None


def test_leaf_by_leaf_each_leaf_is_left_once() -> None:
    ring = ring_order(HOSTS, fabric(leaves=LEAVES))
    assert ring is not None
    assert (ring.crossings, ring.least) == (2, 2)


def test_the_slowest_hop_shares_its_trunk() -> None:
    ring = ring_order(
        ALTERNATING, fabric(leaves=LEAVES, oversubscription=Oversubscription(10.0, 2.5, 4.0, 3.9, 4.1, 5))
    )
    assert ring is not None
    assert (ring.crossings, ring.least) == (4, 2)
    assert ring.rates is not None
    assert ring.rates.ordered_gbit_s == pytest.approx(2.5)
    assert ring.rates.best_gbit_s == pytest.approx(5.0)


def test_no_hop_is_faster_than_within_a_leaf() -> None:
    ring = ring_order(ALTERNATING, fabric(leaves=LEAVES))
    assert ring is not None
    assert ring.rates is not None
    assert ring.rates.ordered_gbit_s == ring.rates.best_gbit_s == pytest.approx(10.0)


def test_hosts_of_no_leaf_are_left_out() -> None:
    ring = ring_order(("node99", *ALTERNATING), fabric(leaves=LEAVES))
    assert ring is not None
    assert ring.crossings == 4
