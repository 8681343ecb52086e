"""NCCL_IB_GID_INDEX is taken away or given only where a RoCE port would use a wrong entry of its table."""

from __future__ import annotations

import pytest

from ncclcheck.advice.rdma.gids import advise_gids, right_indexes
from ncclcheck.advice.rule import Changes, Rule, predictions
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import configured, with_rdma
from tests.builders import with_facts
from tests.fact_builders import some
from tests.nccl.hardware import LINK_LOCAL, ROCE_GIDS, gid, port, rdma, roce

OTHER_GIDS = (gid(0, LINK_LOCAL, "v1"), gid(1, LINK_LOCAL), gid(4, "10.0.0.9", "v1"), gid(5, "10.0.0.9"))


def advised(snapshot: Snapshot, base: Changes) -> tuple[Rule | None, tuple[str, ...]]:
    return advise_gids(snapshot, base, some(predictions(snapshot, base)))


def changes(snapshot: Snapshot) -> dict[str, dict[str, str | None]]:
    rule, notes = advised(snapshot, {})
    assert rule is not None, notes
    return rule.env_by_host


def on_both(value: str | None) -> dict[str, dict[str, str | None]]:
    return {host: {"NCCL_IB_GID_INDEX": value} for host in ("node01", "node02")}


def nothing(snapshot: Snapshot) -> bool:
    return advised(snapshot, {}) == (None, ())


def test_the_right_entries_are_those_of_roce_v2_and_ipv4() -> None:
    assert right_indexes(roce()) == (3,)
    assert right_indexes(roce(gids=(*ROCE_GIDS, gid(7, "10.9.0.1")))) == (3, 7)
    assert right_indexes(roce(gids=Missing("denied", "no"))) == ()
    assert right_indexes(roce(gids=(gid(0, "garbage"),))) == ()


def test_a_new_library_that_is_left_alone_needs_nothing() -> None:
    assert nothing(with_rdma(2, roce(), version="2.28.9"))
    assert nothing(with_rdma(2, port(), version="2.20.5"))  # native InfiniBand has no such choice
    assert nothing(with_rdma(2, version="2.20.5"))
    assert nothing(with_rdma(2, roce(), version="2.20.5", NCCL_IB_GID_INDEX="3"))


@pytest.mark.parametrize("value", ["0", "1", "2", "9"])
def test_a_wrong_index_is_taken_away_where_the_library_finds_the_right_one(value: str) -> None:
    snapshot = with_rdma(2, roce(), version="2.21.5", NCCL_IB_GID_INDEX=value)
    assert changes(snapshot) == on_both(None)
    rule, _ = advised(snapshot, {})
    assert rule is not None
    assert f"NCCL would use GID {value} of mlx5_0:1" in rule.why
    assert "then GID 3 of mlx5_0:1" in rule.evidence
    assert changes(configured(with_rdma(2, roce()), "node01", NCCL_IB_GID_INDEX=value)) == on_both("")


def test_a_right_index_is_only_told_to_be_obsolete() -> None:
    rule, notes = advised(with_rdma(2, roce(), NCCL_IB_GID_INDEX="3"), {})
    assert rule is None
    assert "obsolete from NCCL 2.21 on" in notes[0]


def test_an_old_library_is_given_the_index() -> None:
    assert changes(with_rdma(2, roce(), version="2.20.5")) == on_both("3")
    assert changes(with_rdma(2, roce(), version="2.18.3", NCCL_IB_GID_INDEX="0")) == on_both("3")


def test_an_old_library_is_given_the_index_of_each_node_where_they_differ() -> None:
    snapshot = with_facts(with_rdma(2, roce(), version="2.20.5"), "node02", rdma=rdma(roce(gids=OTHER_GIDS)))
    assert changes(snapshot) == {
        "node01": {"NCCL_IB_GID_INDEX": "3"},
        "node02": {"NCCL_IB_GID_INDEX": "5"},
    }


def test_a_node_that_has_its_right_index_already_is_given_none() -> None:
    snapshot = with_rdma(2, roce(), version="2.20.5", NCCL_IB_GID_INDEX="5")
    snapshot = with_facts(snapshot, "node02", rdma=rdma(roce(gids=OTHER_GIDS)))
    assert changes(snapshot) == {"node01": {"NCCL_IB_GID_INDEX": "3"}, "node02": {}}


def test_ports_of_one_node_without_a_common_index_are_told() -> None:
    rule, notes = advised(with_rdma(2, roce(), roce("mlx5_1", gids=OTHER_GIDS), version="2.20.5"), {})
    assert rule is None
    assert "no one index is right for all ports of a node" in notes[0]


def test_what_is_not_known_or_asked_for_otherwise_is_not_advised_on() -> None:
    assert nothing(with_rdma(2, roce(gids=Missing("denied", "no")), version="2.20.5"))
    assert nothing(with_rdma(2, roce(gids=(gid(0, "fd00::1"),)), version="2.20.5"))
    assert nothing(with_rdma(2, roce(), NCCL_IB_GID_INDEX="1", NCCL_IB_ADDR_FAMILY="AF_INET6"))
