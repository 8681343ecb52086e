"""More threads and sockets are advised by the guide's rule alone: sockets that carry the data, on 100 Gbit/s."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.advice.leftover_settings import common_network
from ncclcheck.advice.rule import Rule, predictions
from ncclcheck.advice.threads import advise_threads
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import with_rdma
from tests.builders import everywhere, with_facts
from tests.fact_builders import some
from tests.nccl.hardware import port

PLACES = {"node01": ("eth0", "10.0.0.1"), "node02": ("eth0", "10.0.0.2")}


def advised(snapshot: Snapshot) -> tuple[Rule | None, tuple[str, ...]]:
    return advise_threads(snapshot, {}, common_network(some(predictions(snapshot, {}))), PLACES)


def with_links(speed_mbps: Fact[int], **changes: Any) -> Snapshot:
    """Two nodes without RDMA, whose interfaces are of that speed."""
    snapshot = with_rdma(2)
    for node in snapshot.nodes:
        links: tuple[Interface, ...] = tuple(
            replace(interface, speed_mbps=speed_mbps, **changes) for interface in some(node.facts.interfaces)
        )
        snapshot = with_facts(snapshot, node.host, interfaces=links)
    return snapshot


def test_four_and_four_on_100_gbit_s_with_the_guide_as_source() -> None:
    rule, _ = advised(with_links(100_000))
    assert rule is not None
    assert rule.env_by_host["node02"] == {"NCCL_SOCKET_NTHREADS": "4", "NCCL_NSOCKS_PERTHREAD": "4"}
    assert "user guide" in rule.evidence
    assert "not measured" in rule.evidence


def test_below_what_the_guide_speaks_of_it_is_a_note_and_below_25_nothing() -> None:
    rule, notes = advised(with_links(25_000))
    assert rule is None
    assert "not advised, since it was not measured" in notes[0]
    assert advised(with_links(10_000)) == (None, ())
    assert advised(with_links(Missing("error", "-1"))) == (None, ())


@pytest.mark.parametrize("driver", ["ena", "gve"])
def test_clouds_that_nccl_tunes_itself_are_left_alone(driver: str) -> None:
    assert advised(with_links(100_000, driver=driver)) == (None, ())


def test_data_that_do_not_go_over_sockets_or_over_nccl_need_none() -> None:
    assert advised(with_rdma(2, port())) == (None, ())
    assert advised(with_links(100_000, kind="ipoib")) == (None, ())
    assert advised(everywhere(with_links(100_000), gpus=())) == (None, ())
    assert advised(everywhere(with_links(100_000), rdma=Missing("denied", "no"))) == (None, ())


@pytest.mark.parametrize("name", ["NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"])
def test_what_somebody_has_set_is_left_alone(name: str) -> None:
    assert advised(everywhere(with_links(100_000), environment={name: "2"})) == (None, ())
