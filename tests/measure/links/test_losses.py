"""Which pairs are tried for lost packets, and which node or pair is called lossy."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ncclcheck.measure.links.losses import Lost, added_up, lossy_parts, to_try, without_lossy
from ncclcheck.model.snapshot import Probe
from tests.fact_builders import address_of, host_of
from tests.probe_builders import loss_probe, timed_probe, timed_probes

FOUR = {host_of(number): ("eth0", address_of(number)) for number in range(4)}
TWO = {host_of(number): ("eth0", address_of(number)) for number in range(2)}


def with_resent(
    probes: Sequence[Probe], target: int, resent: int, kind: str = "bandwidth"
) -> tuple[Probe, ...]:
    """The probes of which those of that kind to one node had so many packets sent again."""
    return tuple(
        replace(probe, measured=replace(probe.measured, resent=resent))
        if probe.kind == kind and probe.to_host == host_of(target) and probe.measured
        else probe
        for probe in probes
    )


def test_healthy_transfers_are_not_tried() -> None:
    assert to_try(timed_probes(4), FOUR) == ()


def test_each_pair_whose_transfer_sent_packets_again_is_tried_once_in_one_direction() -> None:
    tried = to_try(with_resent(timed_probes(4), 2, 400), FOUR)
    assert {frozenset(pair) for _, *pair in tried} == {frozenset({2, other}) for other in (0, 1, 3)}
    assert {network for network, *_ in tried} == {0}


def test_a_single_packet_that_is_sent_again_on_the_idle_network_is_reason_enough() -> None:
    assert len(to_try(with_resent(timed_probes(4), 2, 1, "latency"), FOUR)) == 3


def test_what_is_clear_is_not_tried_again() -> None:
    probes = (
        loss_probe(0, 1, 3),
        loss_probe(1, 0, 0),
        loss_probe(0, 2, 9),
        loss_probe(2, 0, 1),
        loss_probe(0, 3, 0),
    )
    assert {frozenset(pair) for _, *pair in to_try(probes, FOUR)} == {frozenset({0, 1})}


def test_a_pair_that_loses_packets_is_not_measured_again_in_either_direction() -> None:
    probes = (loss_probe(0, 1, 9), loss_probe(1, 0, 0), loss_probe(0, 2, 1), loss_probe(2, 0, 0))
    slow = ((0, 0, 1), (0, 1, 0), (0, 0, 2), (1, 0, 1))
    assert without_lossy(slow, probes, FOUR) == ((0, 0, 2), (1, 0, 1))


def test_what_is_tried_again_adds_up() -> None:
    (total,) = added_up(added_up((), [loss_probe(0, 1, 2)]), [loss_probe(0, 1, 3)])
    assert (total.value, total.measured and total.measured.segments) == (0.417, 1200)


def test_a_node_that_loses_what_it_receives_is_told_from_its_partners() -> None:
    probes = [*timed_probes(4), *(loss_probe(other, 2, 6) for other in (0, 1, 3))]
    probes += [loss_probe(2, other, 0) for other in (0, 1, 3)]
    parts = lossy_parts(probes, FOUR)
    assert [(end.host, end.end, end.total) for end in parts.ends] == [
        (host_of(2), "receiver", Lost(1800, 18))
    ]
    assert parts.pairs == ()


def test_a_pair_is_named_where_its_ends_lose_nothing_with_others() -> None:
    parts = lossy_parts([*timed_probes(4), loss_probe(0, 2, 12), loss_probe(2, 0, 0)], FOUR)
    assert parts.ends == ()
    assert [lossy.pair for lossy in parts.pairs] == [(host_of(0), host_of(2))]


def test_of_two_nodes_the_direction_is_named() -> None:
    parts = lossy_parts([timed_probe("bandwidth", 0, 1, 9.0), loss_probe(0, 1, 12), loss_probe(1, 0, 0)], TWO)
    assert [lossy.pair for lossy in parts.pairs] == [(host_of(0), host_of(1))]


def test_a_few_lost_packets_are_an_accident() -> None:
    parts = lossy_parts([*timed_probes(4), loss_probe(0, 2, 2, 1800), loss_probe(1, 2, 1, 1800)], FOUR)
    assert (parts.ends, parts.pairs) == ((), ())


def test_two_nodes_that_lose_what_they_receive_are_told_from_who_sends_to_both() -> None:
    three = {host: FOUR[host] for host in list(FOUR)[:3]}
    probes = [*timed_probes(3), *(loss_probe(*way, 9) for way in ((0, 1), (0, 2), (1, 2), (2, 1)))]
    probes += [loss_probe(1, 0, 0), loss_probe(2, 0, 0)]
    ends = [(end.host, end.end) for end in lossy_parts(probes, three).ends]
    assert ends == [(host_of(1), "receiver"), (host_of(2), "receiver")]


def test_a_node_that_loses_in_both_directions_is_named_for_both() -> None:
    ways = [way for other in (0, 1, 3) for way in ((2, other), (other, 2))]
    ends = {(end.host, end.end) for end in lossy_parts([loss_probe(*way, 9) for way in ways], FOUR).ends}
    assert ends == {(host_of(2), "receiver"), (host_of(2), "sender")}


def test_a_single_packet_in_the_other_direction_changes_nothing() -> None:
    lossy = [(0, 1, 22), (0, 2, 13), (3, 1, 15), (3, 2, 12), (1, 2, 18), (2, 1, 17), (1, 3, 1)]
    clean = [(1, 0, 0), (2, 0, 0), (2, 3, 0)]
    parts = lossy_parts([loss_probe(*probe) for probe in (*lossy, *clean)], FOUR)
    assert [(end.host, end.end) for end in parts.ends] == [
        (host_of(1), "receiver"),
        (host_of(2), "receiver"),
    ]
    assert parts.pairs == ()
