"""NC310 rdma-errors."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import PortCounters, RdmaCounters
from ncclcheck.model.snapshot import Snapshot
from tests.builders import node, with_facts
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, some
from tests.hardware_builders import NO_ERRORS, rdma_cluster, roce_cluster

SLUG = "rdma-errors"
TOP32 = 1 << 32


def with_counters(
    snapshot: Snapshot, host: str, device: str, before: dict[str, Fact[int]], after: dict[str, Fact[int]]
) -> Snapshot:
    """The snapshot in which one port counted this, beside what all ports have."""
    section = some(node(snapshot, host).facts.rdma_counters)
    ports = tuple(
        replace(port, before={**NO_ERRORS, **before}, after={**NO_ERRORS, **after})
        if port.device == device
        else port
        for port in section.ports
    )
    return with_facts(snapshot, host, rdma_counters=RdmaCounters(ports))


@pytest.mark.parametrize(
    ("counter", "severity", "words"),
    [
        ("link_downed", "error", "the link went down"),
        ("symbol_error", "warning", "bits were damaged on the cable"),
        ("port_rcv_errors", "warning", "packets arrived damaged"),
        ("out_of_sequence", "warning", "packets were lost or reordered"),
        ("packet_seq_err", "warning", "the other end missed packets"),
        ("roce_adp_retrans", "warning", "packets were retransmitted"),
        ("local_ack_timeout_err", "warning", "did not answer in time"),
        ("np_cnp_sent", "info", "congested"),
        ("rp_cnp_handled", "info", "congested"),
        ("some_vendors_tx_errors", "warning", "some_vendors_tx_errors grew"),
    ],
)
def test_port_counter_and_growth_are_named(counter: str, severity: str, words: str) -> None:
    found = finding(SLUG, with_counters(roce_cluster(4), "node03", "mlx5_5", {counter: 7}, {counter: 19}))
    assert (found.severity, found.hosts) == (severity, ("node03",))
    assert f"{counter} grew during the run on mlx5_5:1 of node03 by 12" in found.summary
    assert words in found.summary
    assert found.evidence[0].observed == "7, then 19"
    assert found.evidence[0].source == "/sys/class/infiniband/mlx5_5/ports/1/"


def test_what_was_counted_before_the_run_is_not_judged() -> None:
    old: dict[str, Fact[int]] = {"symbol_error": 4000, "link_downed": 3}
    assert is_silent(SLUG, with_counters(rdma_cluster(2), "node01", "mlx5_0", old, old))


def test_ports_with_the_same_trouble_are_told_together() -> None:
    snapshot = rdma_cluster(3)
    for device in ("mlx5_1", "mlx5_2"):
        snapshot = with_counters(snapshot, "node02", device, {}, {"symbol_error": 3})
    found = finding(SLUG, snapshot)
    assert "mlx5_1:1 of node02 by 3, mlx5_2:1 of node02 by 3" in found.summary
    assert len(found.evidence) == 2


def test_a_counter_that_wraps_is_followed() -> None:
    found = finding(
        SLUG,
        with_counters(
            roce_cluster(2), "node01", "mlx5_0", {"out_of_sequence": TOP32 - 2}, {"out_of_sequence": 3}
        ),
    )
    assert "by 5" in found.summary


def test_a_counter_that_was_reset_tells_what_came_after_and_no_more() -> None:
    grown = with_counters(rdma_cluster(2), "node01", "mlx5_0", {"symbol_error": 900}, {"symbol_error": 4})
    assert "by at least 4" in finding(SLUG, grown).summary
    quiet = run(SLUG, with_counters(rdma_cluster(2), "node01", "mlx5_0", {"symbol_error": 900}, {}))
    assert quiet.outcome == "unknown"
    assert "node01: mlx5_0:1: symbol_error was reset during the run" in quiet.reason


def test_a_counter_at_its_largest_value_tells_nothing() -> None:
    full: dict[str, Fact[int]] = {"link_downed": 255}
    result = run(SLUG, with_counters(rdma_cluster(2), "node01", "mlx5_0", full, full))
    assert result.outcome == "unknown"
    assert "link_downed is at its maximum, 255" in result.reason


@pytest.mark.parametrize("value", [Missing("denied", "not allowed"), Missing("error", "no number: 'x'")])
def test_a_counter_that_cannot_be_read_is_unknown(value: Missing) -> None:
    for before, after in (({"symbol_error": value}, {}), ({}, {"symbol_error": value})):
        result = run(SLUG, with_counters(rdma_cluster(2), "node01", "mlx5_0", {**before}, {**after}))
        assert result.outcome == "unknown"
        assert f"node01: mlx5_0:1: symbol_error: {value}" in result.reason


def test_a_counter_that_is_told_only_once_is_unknown() -> None:
    result = run(SLUG, with_counters(rdma_cluster(2), "node01", "mlx5_0", {}, {"packet_seq_err": 0}))
    assert (result.outcome, result.reason) == ("unknown", "node01: mlx5_0:1: packet_seq_err: read only once")


def test_without_a_second_reading_nothing_passes() -> None:
    snapshot = rdma_cluster(2)
    section = some(node(snapshot, "node02").facts.rdma_counters)
    ports = tuple(replace(port, after=GONE) for port in section.ports)
    result = run(SLUG, with_facts(snapshot, "node02", rdma_counters=RdmaCounters(ports)))
    assert result.outcome == "unknown"
    assert f"error counters: {GONE}" in result.reason


def test_an_infiniband_port_that_tells_less_than_every_port_has_is_unknown() -> None:
    ports = tuple(
        PortCounters(f"mlx5_{rail}", 1, {"symbol_error": 0}, {"symbol_error": 0}) for rail in range(8)
    )
    result = run(SLUG, with_facts(rdma_cluster(2), "node02", rdma_counters=RdmaCounters(ports)))
    assert result.outcome == "unknown"
    assert "link_downed: not told" in result.reason
    assert is_silent(SLUG, with_facts(roce_cluster(2), "node02", rdma_counters=RdmaCounters(ports)))


def test_machines_without_rdma_are_not_asked() -> None:
    none = RdmaCounters(())
    snapshot = with_facts(
        with_facts(rdma_cluster(2), "node01", rdma_counters=none), "node02", rdma_counters=none
    )
    result = run(SLUG, snapshot)
    assert (result.outcome, result.reason) == ("not_applicable", "node01 and node02: no RDMA device")
