"""What looks slow is measured again before it is called so, and the best counts: a disturbance does not last.

Again means one direction at a time, and no node in two transfers at once: what was slow only because the
acknowledgements of its data waited behind the data of a slow node is then as fast as it can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.measure.links.network_rates import Places, Throughput, attempts, measured_gbit_s, network_us
from ncclcheck.measure.links.outliers import FEWEST_NODES, Pair, late_pairs
from ncclcheck.measure.links.slow_parts import slow_parts
from ncclcheck.model.snapshot import Probe

MOST_ROUNDS = 12  # of all passes together: two seconds
MOST_PASSES = 3
_TRIES, _TRIES_OF_AN_END = 3, 2  # of one transfer, the first one included; a slow end is in several transfers
Transfer: TypeAlias = tuple[int, int, int]  # network, from, to: positions


class RetryRound(Struct, frozen=True, forbid_unknown_fields=True):
    """Transfers of one network at the same time, (from, to), in which every node is at most once."""

    network: int
    pairs: tuple[tuple[int, int], ...]


def suspicious(probes: Sequence[Probe], networks: Sequence[Places]) -> tuple[Transfer, ...]:
    """Return what to measure again, as positions among the networks and their hosts.

    Of NCCL's network, the first, first.

    What is called slow, with the way back between two nodes, and failed transfers: a transfer of a slow end once
    more, another one twice. And where another network is clearly faster than the first, once more a transfer from and
    to each node of the first.
    """
    found: dict[Transfer, None] = {}
    for number, places in enumerate(networks):
        place = {host: position for position, host in enumerate(places)}
        tried = attempts(probes, places, "bandwidth")
        tries = {(probe.from_host, probe.to_host): _tries(probe) for probe in tried}
        for (source, target), enough in _doubtful(tried, len(places)):
            if tries[source, target] < enough:
                found[number, place[source], place[target]] = None
    if _is_slower(probes, networks):
        hosts = list(networks[0])
        once = {
            (attempt.from_host, attempt.to_host)
            for attempt in attempts(probes, networks[0], "bandwidth")
            if _tries(attempt) == 1
        }
        for position, host in enumerate(hosts):
            following = (position + 1) % len(hosts)
            if (host, hosts[following]) in once:
                found[0, position, following] = None
    return tuple(found)


def _doubtful(transfers: Sequence[Probe], nodes: int) -> Iterator[tuple[Pair, int]]:
    """Return each doubtful transfer, and how often it has to be tried before it is believed."""
    slow = slow_parts(transfers)
    for end in slow.ends:
        yield from ((pair, _TRIES_OF_AN_END) for pair in end.pairs)
    for slow_way in slow.pairs:
        yield slow_way.pair, _TRIES
        if nodes < FEWEST_NODES:
            yield slow_way.pair[::-1], _TRIES
    yield from (
        ((transfer.from_host, transfer.to_host), _TRIES) for transfer in transfers if transfer.value is None
    )


def _tries(probe: Probe) -> int:
    return probe.measured.transfers if probe.measured else 1


def _is_slower(probes: Sequence[Probe], networks: Sequence[Places]) -> bool:
    found = [measured_gbit_s(probes, places) for places in networks]
    known = [throughput for throughput in found if isinstance(throughput, Throughput)]
    return isinstance(found[0], Throughput) and any(
        found[0].is_slower_than(throughput) for throughput in known
    )


def late_again(probes: Sequence[Probe], networks: Sequence[Places]) -> tuple[Transfer, ...]:
    """Return the late round trips of the first network, tried three times at most: a busy core makes one late, too."""
    place = {host: position for position, host in enumerate(networks[0])}
    tried = {
        (attempt.from_host, attempt.to_host): attempt
        for attempt in attempts(probes, networks[0], "latency")
        if attempt.value is not None
    }
    medians = {pair: probe.value or 0.0 for pair, probe in tried.items()}
    least = {pair: network_us(probe) for pair, probe in tried.items()}
    late = (pair for found in late_pairs(medians, least) for pair in found.pairs)
    return tuple((0, place[pair[0]], place[pair[1]]) for pair in late if _tries(tried[pair]) < _TRIES)


def rounds_again(transfers: Sequence[Transfer], most: int) -> tuple[RetryRound, ...]:
    """Return the transfers in as few rounds as come of putting each into the first that has room.

    At most so many rounds.
    """
    rounds: list[tuple[int, list[tuple[int, int]]]] = []
    for network, source, target in transfers:
        for used, pairs in rounds:
            if used == network and not any({source, target} & set(pair) for pair in pairs):
                pairs.append((source, target))
                break
        else:
            if len(rounds) < most:
                rounds.append((network, [(source, target)]))
    return tuple(RetryRound(network, tuple(pairs)) for network, pairs in rounds)


def with_the_best(probes: Sequence[Probe], again: Sequence[Probe]) -> tuple[Probe, ...]:
    """Return the probes, each with the better one of its own value and that which was measured again."""
    by_way = {_path_key(probe): probe for probe in again}
    return tuple(
        _better(probe, by_way[_path_key(probe)]) if _path_key(probe) in by_way else probe for probe in probes
    )


def _path_key(probe: Probe) -> tuple[str, str, str, str]:
    return probe.kind, probe.from_host, probe.to_host, probe.address


def _better(probe: Probe, again: Probe) -> Probe:
    if probe.value is None or probe.measured is None:
        return again if again.value is not None else probe
    if again.value is None or again.measured is None:
        return probe
    count = probe.measured.transfers + again.measured.transfers
    is_better = again.value > probe.value if probe.kind == "bandwidth" else again.value < probe.value
    best, measured = (again, again.measured) if is_better else (probe, probe.measured)
    return replace(best, measured=replace(measured, transfers=count))
