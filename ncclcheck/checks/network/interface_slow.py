"""NC216 interface-slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from ncclcheck.checks.chosen import Chosen, chosen, not_chosen
from ncclcheck.checks.hosts import named
from ncclcheck.checks.majority import Comparison, compare, sentence
from ncclcheck.checks.majority import evidence as compared_evidence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.networks import (
    Places,
    Throughput,
    attempts,
    is_cpu_limited,
    measured_gbit_s,
    measured_networks,
)
from ncclcheck.measure.outliers import SlowEnd, SlowPair, slow_ends
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
    "NCCL's interface is as fast as the nodes have, on every node",
    needs=("interfaces",),
    nodes=2,
    met=True,
)
def interface_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """The network that NCCL uses carries as much as any other that all nodes share, and every node does its part.

    ## Why it matters
    A collective is as fast as its slowest node. NCCL takes interfaces by name, not by speed: it may use a management
    network with 1 Gbit/s next to one with 100; or one node of many has a link that came up at a lower speed, a bad
    cable, or a limit that somebody set.

    ## How to fix
    Another network is faster: use the settings that ncclcheck advises (`ncclcheck env`), which name it. One node is
    slower: compare its link (`ethtool IFACE`), its errors (`ip -s link show IFACE`), its queues (`tc qdisc show`) and
    its load with those of another node. One pair is slow, and each of both is fast with others: look at the switches
    between them, and measure again, since it was measured once, for a fraction of a second.

    ## Source
    Measured: each node sends to two or three others in turn, several TCP streams each, and the receiver counts. A node
    is called slow when all its transfers are 30 % below what is usual, a pair when it is 50 % below, and both beyond
    3.5 robust standard deviations (1.4826 MAD). A value that the CPU limited is never called slow. Another network
    counts as faster from 1.3 times on, where the values do not overlap. Link speed: /sys/class/net/IFACE/speed.
    """
    seen = chosen(snapshot)
    yield from _link_speeds(seen)
    if len(seen) == len(snapshot.nodes):
        yield from _measured(snapshot, {one.host: (one.name, one.address) for one in seen}, seen)
    yield from not_chosen(snapshot)


def _link_speeds(seen: Sequence[Chosen]) -> Iterator[Finding]:
    known = [(one, one.interface.speed_mbps) for one in seen]
    speeds = compare((one.host, speed) for one, speed in known if not isinstance(speed, Missing))
    fastest = max((group.value for group in speeds.groups), default=0)
    expected = speeds.usual.value if speeds.usual else fastest
    slow = tuple(host for group in speeds.groups if group.value < expected for host in group.hosts)
    if slow:
        names = {one.host: one.name for one in seen}
        yield _link_finding(speeds, slow, names[slow[0]])


def _link_finding(speeds: Comparison[int], slow: tuple[str, ...], name: str) -> Finding:
    def show(mbps: int) -> str:
        return _speed(mbps / _MBIT)

    return Finding(
        "warning",
        f"the link of NCCL's interface is slower on {named(slow)} than elsewhere: {sentence(speeds, show)}; every "
        "collective is as slow as that",
        slow,
        compared_evidence(speeds, "link speed of NCCL's interface", f"/sys/class/net/{name}/speed", show),
        (
            Fix(
                "look why the link came up at this speed: cable, transceiver, switch port, or a setting",
                (f"ethtool {name}", f"dmesg | grep {name}"),
            ),
        ),
    )


def _measured(snapshot: Snapshot, places: Places, seen: Sequence[Chosen]) -> Iterator[Answer]:
    own = measured_gbit_s(snapshot.probes, places)
    tried = () if isinstance(snapshot.probes, Missing) else attempts(snapshot.probes, places, "bandwidth")
    for probe in tried:
        if probe.value is None:
            where = f"the transfer to {probe.to_host} ended as {probe.outcome}"
            yield NotKnown(f"{where}: {probe.detail}" if probe.detail else where, (probe.from_host,))
    if isinstance(own, Missing):
        yield NotKnown(f"bandwidth of NCCL's network: {own}")
        return
    yield from _faster_network(snapshot, places, own)
    yield from _outliers([probe for probe in tried if probe.value is not None], places)
    yield from _far_below_link(own, seen, tried)


def _faster_network(snapshot: Snapshot, places: Places, own: Throughput) -> Iterator[Finding]:
    hosts = tuple(node.host for node in snapshot.nodes)
    others = []
    for network in measured_networks(snapshot.probes, hosts):
        value = measured_gbit_s(snapshot.probes, network)
        if not isinstance(value, Missing) and own.is_slower_than(value):
            others.append((value.median, network, value))
    if not others:
        return
    _, network, value = max(others, key=lambda one: one[0])
    used, better = _names(places), _names(network)
    data = _data_network(snapshot)
    what = "starts over" if data else "would use"
    effect = f"; that is its start only, data goes over {data}" if data else ""
    severity: Severity = "info" if data else "warning"
    yield Finding(
        severity,
        f"NCCL {what} {used}, which carries {_speed(own.median)} between the nodes, though all nodes reach each other "
        f"on {better}, which carries {_speed(value.median)}, {value.median / own.median:.1f} times as much{effect}",
        hosts,
        (
            _throughput_evidence(hosts, used, own, f"as fast as {better}"),
            _throughput_evidence(hosts, better, value, ""),
        ),
        (Fix(f"make NCCL use {better}: ncclcheck advises the smallest setting", ("ncclcheck env",)),),
    )


def _data_network(snapshot: Snapshot) -> str:
    """What carries the data on all nodes where that is not TCP over the interface (IB, a plug-in); empty otherwise."""
    choices = [node_choice(node.facts) for node in snapshot.nodes]
    networks = {None if isinstance(one, Missing) else one.network for one in choices}
    return "" if None in networks or SOCKET in networks else "/".join(sorted(map(str, networks)))


def _outliers(transfers: Sequence[Probe], places: Places) -> Iterator[Answer]:
    values: dict[tuple[str, str], list[float]] = {}
    for probe in transfers:
        values.setdefault((probe.from_host, probe.to_host), []).append(probe.value or 0.0)
    medians = {pair: median(found) for pair, found in values.items()}
    limited = frozenset((one.from_host, one.to_host) for one in transfers if is_cpu_limited(one))
    ends, pairs = slow_ends(medians, limited)
    for host in dict.fromkeys(one.host for one in ends):
        mine = sorted((one for one in ends if one.host == host), key=lambda one: one.end, reverse=True)
        yield _end_finding(mine, places[host][0], medians)
    if 0 < len(pairs) <= _MANY_PAIRS:
        for one in pairs:
            yield _pair_finding(one, places)
    elif pairs:
        yield _pairs_finding(pairs, len(medians))


def _end_finding(ends: Sequence[SlowEnd], name: str, values: dict[tuple[str, str], float]) -> Finding:
    host, usual = ends[0].host, ends[0].usual
    does = " and ".join(
        f"{'sends' if one.end == 'sender' else 'receives'} with {_speed(one.median)}" for one in ends
    )
    direction = "both directions" if len(ends) > 1 else "this direction only"
    return Finding(
        "warning",
        f"{host} {does} on {name}, while {_speed(usual)} is usual between the nodes ({direction}; it is {host}, since "
        "all its transfers are slow, and its partners are fast with others): every collective waits for it",
        (host,),
        tuple(
            Evidence(
                pair,
                f"bandwidth from {pair[0]} to {pair[1]} on {name}",
                _speed(values[pair]),
                _speed(usual),
                _SOURCE,
            )
            for one in ends
            for pair in one.pairs
        ),
        (
            Fix(
                f"compare the link, the errors and the queues of {name} on {host} with those of another node",
                (f"ethtool {name}", f"ip -s link show {name}", f"tc -s qdisc show dev {name}"),
            ),
        ),
    )


def _pair_finding(one: SlowPair, places: Places) -> Finding:
    source, target = one.pair
    name = places[target][0]
    return Finding(
        "warning",
        f"{source} sends to {target} on {name} with {_speed(one.value)}, while {_speed(one.usual)} is usual, and both "
        "are fast with others: the way between them is slow, in this direction",
        one.pair,
        (
            Evidence(
                one.pair,
                f"bandwidth from {source} to {target}",
                _speed(one.value),
                _speed(one.usual),
                _SOURCE,
            ),
        ),
        (
            Fix(
                "look at the switches and links between them; measure again first: it was one transfer of a fraction "
                "of a second",
                (f"iperf3 -c {places[target][1]} -P 4   # on {source}; iperf3 -s on {target}",),
            ),
        ),
    )


def _pairs_finding(pairs: Sequence[SlowPair], transfers: int) -> Finding:
    hosts = tuple(dict.fromkeys(host for one in pairs for host in one.pair))
    slowest = min(pairs, key=lambda one: one.value)
    return Finding(
        "warning",
        f"{len(pairs)} of {transfers} transfers between the nodes are less than half as fast as is usual "
        f"({_speed(slowest.usual)}), the slowest from {slowest.pair[0]} to {slowest.pair[1]} with "
        f"{_speed(slowest.value)}, and no single node is in all of them: switches between groups of nodes that are "
        "overbooked, or other traffic",
        hosts,
        tuple(
            Evidence(
                one.pair,
                f"bandwidth from {one.pair[0]} to {one.pair[1]}",
                _speed(one.value),
                _speed(one.usual),
                _SOURCE,
            )
            for one in pairs[:_MANY_PAIRS]
        ),
        (
            Fix(
                "compare the slow pairs with the plan of the network: racks, uplinks, and what else uses them now"
            ),
        ),
    )


def _far_below_link(own: Throughput, seen: Sequence[Chosen], tried: Sequence[Probe]) -> Iterator[Finding]:
    speeds = [one.interface.speed_mbps for one in seen]
    known = [speed for speed in speeds if not isinstance(speed, Missing)]
    busy = sum(_had_a_busy_core(probe) for probe in tried)
    if not known or own.cpu_limited or 2 * busy >= len(tried):
        return
    link = min(known) / _MBIT
    if own.median < _FAR_BELOW * link:
        hosts = tuple(one.host for one in seen)
        name = "/".join(dict.fromkeys(one.name for one in seen))
        yield Finding(
            "info",
            f"{name} carries {_speed(own.median)} between the nodes, far below its link's {_speed(link)}, and no CPU "
            "was the limit: a rate limit, other traffic, or small TCP buffers",
            hosts,
            (_throughput_evidence(hosts, name, own, f"near {_speed(link)}"),),
        )


def _had_a_busy_core(probe: Probe) -> bool:
    share = probe.measured.core_share if probe.measured else None
    return not isinstance(share, float) or share >= _BUSY_CORE


def _throughput_evidence(hosts: tuple[str, ...], name: str, value: Throughput, expected: str) -> Evidence:
    spread = f"{_speed(value.median)} ({value.low:.3g} to {value.high:.3g} in {value.transfers} transfers)"
    limited = ", limited by the CPU" if value.cpu_limited else ""
    return Evidence(hosts, f"bandwidth on {name}", spread + limited, expected, _SOURCE)


def _names(places: Places) -> str:
    return "/".join(dict.fromkeys(name for name, _ in places.values()))


def _speed(gbit_s: float) -> str:
    return f"{gbit_s:.3g} Gbit/s" if gbit_s >= 1 else f"{gbit_s * _MBIT:.3g} Mbit/s"
