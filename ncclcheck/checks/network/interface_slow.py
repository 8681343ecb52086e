"""NC216 interface-slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ncclcheck.checks.chosen import Chosen, chosen, not_chosen
from ncclcheck.checks.hosts import named
from ncclcheck.checks.majority import HostComparison, compare, sentence
from ncclcheck.checks.majority import evidence as compared_evidence
from ncclcheck.checks.network._links import not_connected
from ncclcheck.checks.rates import RateUnit, rate_unit
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.links.network_rates import (
    Places,
    Throughput,
    attempts,
    measured_gbit_s,
    measured_networks,
    summed_up,
)
from ncclcheck.measure.links.outliers import FEWEST_NODES, Pair, SlowEnd, SlowPair
from ncclcheck.measure.links.slow_parts import SlowParts, slow_parts
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.snapshot import Probe, Snapshot
from ncclcheck.nccl.network import SOCKET
from ncclcheck.nccl.prediction import node_choice

_SOURCE = "TCP transfers between the nodes, several streams, counted by the receiver"
_FAR_BELOW = 0.5  # of the link's own speed
_BUSY_CORE = 0.85  # a core this busy may have been what limited a transfer, whoever kept it busy
_MANY_PAIRS = 6  # more slow pairs than this have one cause that is none of these nodes
_MBIT = 1000.0


@check(
    "NC216",
    "interface-slow",
    "NCCL uses the fastest network that all nodes share",
    needs=("interfaces",),
    nodes=2,
    joined=True,
)
def interface_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """NCCL uses the fastest network that all nodes share, and no node is slower on it than the others.

    ## Why it matters
    A collective is as fast as its slowest node. NCCL chooses interfaces by name, not by speed: it may use a 1 Gbit/s
    management network although there is one with 100 Gbit/s. Or one node has a link that came up at a lower speed, a
    bad cable, or a rate limit.

    ## How to fix
    If another network is faster, use the settings from `ncclcheck env`, which name it. If one node is slower, compare
    its link (`ethtool IFACE`), its errors (`ip -s link show IFACE`), its queues (`tc qdisc show`) and its load with
    those of another node. If only one pair is slow, check the switches between the two nodes.

    ## Source
    Measured: each node sends to two or three others in turn, several TCP streams each, and the receiver counts. A node
    is called slow when all its transfers are 30 % below what is usual, a pair when it is 50 % below, and both beyond
    3.5 robust standard deviations (1.4826 MAD); of two nodes, the direction with less than half of the other. What
    looks slow is measured up to two times more, one direction at a time, and the best counts; not where the pair is
    known to lose packets. A value that the CPU limited is never called slow. Another network counts as faster from 1.3
    times on, where the values do not overlap. Link speed: /sys/class/net/IFACE/speed.
    """
    seen = chosen(snapshot)
    yield from _link_speeds(seen)
    if len(seen) == len(snapshot.nodes):
        yield from _measured(snapshot, {choice.host: (choice.name, choice.address) for choice in seen}, seen)
    yield from not_chosen(snapshot)


def _link_speeds(seen: Sequence[Chosen]) -> Iterator[Answer]:
    known = [(choice, choice.interface.speed_mbps) for choice in seen]
    speeds = compare((choice.host, speed) for choice, speed in known if not isinstance(speed, Missing))
    fastest = max((group.value for group in speeds.groups), default=0)
    expected = speeds.usual.value if speeds.usual else fastest
    slow = tuple(host for group in speeds.groups if group.value < expected for host in group.hosts)
    if speeds.groups:  # of cards that have no speed of their own, nothing is to be said
        for choice, speed in known:
            if isinstance(speed, Missing):
                yield NotKnown(f"the link speed of {choice.name}: {speed}", (choice.host,))
    if slow:
        names = {choice.host: choice.name for choice in seen}
        yield _link_finding(speeds, slow, names[slow[0]])


def _link_finding(speeds: HostComparison[int], slow: tuple[str, ...], name: str) -> Finding:
    in_unit = rate_unit(group.value / _MBIT for group in speeds.groups)

    def show(mbps: int) -> str:
        return in_unit(mbps / _MBIT)

    return Finding(
        "warning",
        f"the link of NCCL's interface is slower on {named(slow)} than elsewhere: "
        f"{sentence(speeds, show)}; every collective runs at the speed of the slowest link",
        slow,
        compared_evidence(speeds, "link speed of NCCL's interface", f"/sys/class/net/{name}/speed", show),
        (
            Fix(
                "find out why the link came up at this speed: cable, transceiver, switch port, or a setting",
                (f"ethtool {name}", f"dmesg | grep {name}"),
            ),
        ),
    )


def _measured(snapshot: Snapshot, places: Places, seen: Sequence[Chosen]) -> Iterator[Answer]:
    speed = measured_gbit_s(snapshot.probes, places)
    tried = () if isinstance(snapshot.probes, Missing) else attempts(snapshot.probes, places, "bandwidth")
    for probe in tried:
        if probe.value is None:
            where = f"the transfer to {probe.to_host} ended as {probe.outcome}"
            yield NotKnown(f"{where}: {probe.detail}" if probe.detail else where, (probe.from_host,))
    if isinstance(speed, Missing):
        yield NotKnown(f"bandwidth of NCCL's network: {speed}")
    else:
        yield from _faster_network(snapshot, places, speed)
    slow = slow_parts(tried)
    ended = [silent.host for silent in snapshot.silent if silent.phase == "probes"]
    if ended and len(_measured_hosts(slow)) < FEWEST_NODES:
        yield NotKnown(
            f"{named(ended)} fell silent while the bandwidth was measured: two directions that are left "
            "do not tell which one is usual"
        )
    else:
        yield from _outliers(slow, places, tried)
    yield from _far_below_link(slow, seen, tried)
    yield from not_connected(snapshot)


def _measured_hosts(slow: SlowParts) -> set[str]:
    return {host for pair in slow.values for host in pair}


def _faster_network(snapshot: Snapshot, places: Places, speed: Throughput) -> Iterator[Finding]:
    hosts = tuple(node.host for node in snapshot.nodes)
    others = []
    for network in measured_networks(snapshot.probes, hosts):
        value = measured_gbit_s(snapshot.probes, network)
        if not isinstance(value, Missing) and speed.is_slower_than(value):
            others.append((value.median, network, value))
    if not others:
        return
    _, network, value = max(others, key=lambda rival: rival[0])
    used, better = _names(places), _names(network)
    data = _data_network(snapshot)
    what = "starts over" if data else "would use"
    effect = f"; that affects only the bootstrap, data goes over {data}" if data else ""
    severity: Severity = "info" if data else "warning"
    in_unit = rate_unit((speed.median, value.median))
    yield Finding(
        severity,
        f"NCCL {what} {used}, which carries {in_unit(speed.median)} between the nodes, though all nodes reach "
        f"each other on {better}, which carries {in_unit(value.median)}, {value.median / speed.median:.1f} times as "
        f"much{effect}",
        hosts,
        (
            _throughput_evidence(hosts, used, speed, f"as fast as {better}", in_unit),
            _throughput_evidence(hosts, better, value, "", in_unit),
        ),
        (Fix(f"make NCCL use {better}: `ncclcheck env` prints the setting", ("ncclcheck env",)),),
    )


def _data_network(snapshot: Snapshot) -> str:
    """What carries the data on all nodes where that is not TCP over the interface (IB, a plug-in); empty otherwise."""
    choices = [node_choice(node.facts) for node in snapshot.nodes]
    networks = {None if isinstance(choice, Missing) else choice.network for choice in choices}
    return "" if None in networks or SOCKET in networks else "/".join(sorted(map(str, networks)))


def _outliers(slow: SlowParts, places: Places, tried: Sequence[Probe]) -> Iterator[Answer]:
    often = {(probe.from_host, probe.to_host): probe.measured.transfers for probe in tried if probe.measured}
    for host in dict.fromkeys(end.host for end in slow.ends):
        mine = sorted((end for end in slow.ends if end.host == host), key=lambda end: end.end, reverse=True)
        yield _end_finding(mine, places[host][0], slow.values, often)
    if 0 < len(slow.pairs) <= _MANY_PAIRS:
        for pair in slow.pairs:
            yield _pair_finding(pair, places, often, len(_measured_hosts(slow)))
    elif slow.pairs:
        yield _pairs_finding(slow.pairs, len(slow.values), often)


def _end_finding(
    ends: Sequence[SlowEnd], name: str, values: Mapping[Pair, float], often: Mapping[Pair, int]
) -> Finding:
    host, usual = ends[0].host, ends[0].usual
    in_unit = rate_unit((usual,))
    does = " and ".join(
        f"{'sends' if end.end == 'sender' else 'receives'} with {in_unit(end.median)}" for end in ends
    )
    direction = "both directions" if len(ends) > 1 else "this direction only"
    return Finding(
        "warning",
        f"{host} {does} on {name}, while {in_unit(usual)} is usual between the nodes ({direction}; "
        f"all transfers of {host} are slow, and its partners are fast with other nodes): every "
        "collective waits for it",
        (host,),
        tuple(
            _pair_evidence(pair, f" on {name}", values[pair], usual, often, in_unit)
            for end in ends
            for pair in end.pairs
        ),
        (
            Fix(
                f"compare the link, the errors and the queues of {name} on {host} with those of another node",
                (f"ethtool {name}", f"ip -s link show {name}", f"tc -s qdisc show dev {name}"),
            ),
        ),
    )


def _pair_finding(pair: SlowPair, places: Places, often: Mapping[Pair, int], measured_nodes: int) -> Finding:
    source, target = pair.pair
    name = places[target][0]
    in_unit = rate_unit((pair.usual,))
    sends = f"{source} sends to {target} on {name} with {in_unit(pair.value)}, while {in_unit(pair.usual)}"
    if measured_nodes < FEWEST_NODES:
        what = (
            f"{sends} is measured in the other direction: every collective waits for the slow "
            "direction; with only two nodes measured, either link can be the cause"
        )
        look = f"check the links of both nodes: what {source} sends, and what {target} receives"
    else:
        what = (
            f"{sends} is usual, and both are fast with other nodes: the path between them is "
            "slow, in this direction"
        )
        look = "check the switches and links between them"
    return Finding(
        "warning",
        what,
        pair.pair,
        (_pair_evidence(pair.pair, "", pair.value, pair.usual, often, in_unit),),
        (Fix(look, (f"iperf3 -c {places[target][1]} -P 4   # on {source}; iperf3 -s on {target}",)),),
    )


def _pairs_finding(pairs: Sequence[SlowPair], transfers: int, often: Mapping[Pair, int]) -> Finding:
    hosts = tuple(dict.fromkeys(host for pair in pairs for host in pair.pair))
    slowest = min(pairs, key=lambda pair: pair.value)
    in_unit = rate_unit((slowest.usual,))
    return Finding(
        "warning",
        f"{len(pairs)} of {transfers} transfers between the nodes are less than half as fast as is usual "
        f"({in_unit(slowest.usual)}), the slowest from {slowest.pair[0]} to {slowest.pair[1]} with "
        f"{in_unit(slowest.value)}, and no single node is part of all of them: an oversubscribed "
        "switch between groups of nodes, or other traffic",
        hosts,
        tuple(
            _pair_evidence(pair.pair, "", pair.value, pair.usual, often, in_unit)
            for pair in pairs[:_MANY_PAIRS]
        ),
        (Fix("compare the slow pairs with the network topology: racks, uplinks, and other traffic"),),
    )


def _pair_evidence(
    pair: Pair, where: str, value: float, usual: float, often: Mapping[Pair, int], in_unit: RateUnit
) -> Evidence:
    count = often.get(pair, 1)
    best = f", the best of {count} transfers" if count > 1 else ""
    subject = f"bandwidth from {pair[0]} to {pair[1]}{where}"
    return Evidence(pair, subject, in_unit(value) + best, in_unit(usual), _SOURCE)


def _far_below_link(slow: SlowParts, seen: Sequence[Chosen], tried: Sequence[Probe]) -> Iterator[Finding]:
    """Of what is not called slow: that has a finding already."""
    named_slow = set(slow.transfers())
    rest = [
        (place, place.value)
        for place in tried
        if place.value is not None and (place.from_host, place.to_host) not in named_slow
    ]
    speeds = [place.interface.speed_mbps for place in seen]
    known = [speed for speed in speeds if not isinstance(speed, Missing)]
    busy = sum(_had_a_busy_core(probe) for probe, _ in rest)
    if not known or not rest or 2 * busy >= len(rest):
        return
    link, throughput = min(known) / _MBIT, summed_up(rest)
    if throughput.median < _FAR_BELOW * link and not throughput.cpu_limited:
        hosts = tuple(place.host for place in seen)
        name = "/".join(dict.fromkeys(place.name for place in seen))
        in_unit = rate_unit((link,))
        yield Finding(
            "info",
            f"{name} carries {in_unit(throughput.median)} between the nodes, far below its link's {in_unit(link)}, "
            "and no CPU was the limit: a rate limit, other traffic, or small TCP buffers",
            hosts,
            (_throughput_evidence(hosts, name, throughput, f"near {in_unit(link)}", in_unit),),
        )


def _had_a_busy_core(probe: Probe) -> bool:
    share = probe.measured.core_share if probe.measured else None
    return not isinstance(share, float) or share >= _BUSY_CORE


def _throughput_evidence(
    hosts: tuple[str, ...], name: str, value: Throughput, expected: str, in_unit: RateUnit
) -> Evidence:
    ends = f"{in_unit.number(value.low)} to {in_unit.number(value.high)}"
    limited = ", limited by the CPU" if value.cpu_limited else ""
    observed = f"{in_unit(value.median)} ({ends} in {value.transfers} transfers){limited}"
    return Evidence(hosts, f"bandwidth on {name}", observed, expected, _SOURCE)


def _names(places: Places) -> str:
    return "/".join(dict.fromkeys(name for name, _ in places.values()))
