"""What both ends say of a transfer becomes a probe; nothing else that a node says is taken."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.probe.bandwidth import Received, Sent
from ncclcheck.exchange.probe.ring_results import Ends, bandwidths, busier, round_trips, together
from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import Probe
from tests.fact_builders import host_of
from tests.run.steps.test_measure import ring, two_networks

GONE = Missing("unsupported", "not told")


Told = tuple[tuple[Sent, ...], tuple[Received, ...]]


def said(ticket: int, count: int) -> Told:
    """A node whose transfers all went well: it sent with `ticket` MB/s less than it received."""
    sent = tuple(Sent(number, "ok", "", f"10.0.0.{ticket}", 0.25, 0.5) for number in range(count))
    received = tuple(Received(number, "ok", "", 125e6, 0.1, 0.5, 0.75) for number in range(count))
    return sent, received


def ends(told: dict[int, Told]) -> Ends:
    """What these nodes say, by ticket."""
    return Ends(
        {(ticket, end.number): end for ticket, (sent, _) in told.items() for end in sent},
        {(ticket, end.number): end for ticket, (_, received) in told.items() for end in received},
    )


def test_each_transfer_is_one_probe_of_what_both_ends_say() -> None:
    found = ring(two_networks())
    probes = bandwidths(found, ends({ticket: said(ticket, found.plan.rounds) for ticket in (1, 2, 3)}), found)
    assert len(probes) == 12
    assert {probe.interface for probe in probes[:6]} == {"eth0"}
    assert {(probe.from_host, probe.to_host) for probe in probes[:6]} == {
        (host_of(caller), host_of(called)) for caller in range(3) for called in range(3) if caller != called
    }
    first = probes[0]
    assert (first.kind, first.outcome, first.value, first.unit) == ("bandwidth", "ok", 1.0, "Gbit/s")
    assert first.measured is not None
    assert first.measured.source_address == "10.0.0.1"
    assert (first.measured.cpu_share, first.measured.core_share) == (0.75, 0.75)


def test_a_transfer_of_which_one_end_said_nothing_has_no_value() -> None:
    found = ring(two_networks())
    probes = bandwidths(found, ends({ticket: said(ticket, found.plan.rounds) for ticket in (1, 2)}), found)
    lost = [probe for probe in probes if probe.value is None]
    assert {frozenset((probe.from_host, probe.to_host)) for probe in lost} == {
        frozenset(("node01", "node03")),
        frozenset(("node02", "node03")),
    }
    assert {(probe.outcome, probe.detail) for probe in lost} == {("error", "node03 did not tell how it went")}


def test_the_end_that_failed_is_named() -> None:
    found = ring(two_networks())
    answers = {ticket: said(ticket, found.plan.rounds) for ticket in (1, 2, 3)}
    failed = (Received(0, "stalled", "data came at first, and then no more"), *answers[2][1][1:])
    probes = bandwidths(found, ends({**answers, 2: (answers[2][0], failed)}), found)
    (lost,) = [probe for probe in probes if probe.outcome != "ok"]
    assert (lost.from_host, lost.to_host, lost.outcome) == ("node01", "node02", "stalled")
    assert lost.detail == "node02: data came at first, and then no more"


def test_a_node_speaks_for_itself_only() -> None:
    found = ring(two_networks())
    probe = Probe("latency", "node03", "node02", "eth0", "10.0.0.2", 5000, "ok", 40.0, "us")
    foreign = replace(probe, address="192.0.2.1")
    (kept,) = round_trips(found, {1: (replace(probe, kind="tcp"), foreign)})
    assert kept == replace(probe, from_host="node01")


def test_shares_of_both_ends_are_put_together() -> None:
    assert together(0.7, 0.6) == 1.0
    assert together(0.25, 0.5) == 0.75
    assert together(GONE, 0.5) == GONE
    assert together(0.5, GONE) == GONE
    assert busier(0.5, 0.7) == 0.7
    assert busier(GONE, 0.7) == 0.7
    assert busier(0.5, GONE) == 0.5
