"""NC217 latency-outlier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.network._links import not_connected
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.links.network_rates import Places, attempts, least_us, network_us
from ncclcheck.measure.links.outliers import LatePairs, Pair, late_pairs
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

_LISTED = 6


@check(
    "NC217",
    "latency-outlier",
    "No node has a much higher latency than the others",
    needs=("interfaces",),
    nodes=3,
    joined=True,
)
def latency_outlier(snapshot: Snapshot) -> Iterator[Answer]:
    """The round trip of a small message on NCCL's interface takes about the same time between all pairs of nodes.

    ## Why it matters
    A collective is a chain of steps between neighbours, so one slow node delays every step. Small collectives, the
    majority in training with many layers, are dominated by latency.

    ## How to fix
    Check what differs on the node that all slow pairs have in common: another rack or zone, a path through a router,
    firewall or tunnel, a CPU in deep sleep states (`cpupower idle-info`) or under load, interrupt coalescing
    (`ethtool -c IFACE`).

    ## Source
    Measured: the median of up to 30 round trips of one byte over TCP (TCP_NODELAY) on an idle network. Late: three
    times the usual value and 100 us more, and beyond 3.5 robust standard deviations (1.4826 MAD), the quickest round
    trip too, and the quickest that the kernel saw (`tcpi_min_rtt`), which waits for no process. Where only the
    processes are late, the node is busy and not its network: that is for information. What looks late is measured up
    to two times more, and the best counts.
    """
    seen = chosen(snapshot)
    places: Places = {choice.host: (choice.name, choice.address) for choice in seen}
    found = () if isinstance(snapshot.probes, Missing) else attempts(snapshot.probes, places, "latency")
    medians: dict[Pair, float] = {}
    least: dict[Pair, float] = {}
    of_network: dict[Pair, float] = {}
    for probe in found:
        if probe.value is None:
            yield NotKnown(f"the round trip to {probe.to_host} ended as {probe.outcome}", (probe.from_host,))
        else:
            pair = probe.from_host, probe.to_host
            medians[pair], least[pair], of_network[pair] = probe.value, least_us(probe), network_us(probe)
    late_on_network = late_pairs(medians, of_network)
    for late in late_on_network:
        yield _finding(late, medians, places)
    explained = {pair for late in late_on_network for pair in late.pairs}
    for late in late_pairs(medians, least):
        if late.host is not None and explained.isdisjoint(late.pairs):
            yield _busy(late.host, late, of_network)
    measured_hosts = {host for pair in medians for host in pair}
    if len(seen) == len(snapshot.nodes) and (
        missing := [choice.host for choice in seen if choice.host not in measured_hosts]
    ):
        yield NotKnown("the latency of NCCL's network was not measured", tuple(missing))
    yield from not_connected(snapshot)
    yield from not_chosen(snapshot)


def _finding(late: LatePairs, medians: dict[Pair, float], places: Places) -> Finding:
    hosts = tuple(dict.fromkeys(host for pair in late.pairs for host in pair))
    name = places[late.host or hosts[0]][0]
    who = (
        f"{late.host} has a high latency"
        if late.host
        else f"the path from {late.pairs[0][0]} to {late.pairs[0][1]} has a high latency"
    )
    if late.host is None and len(late.pairs) > 1:
        who = f"{len(late.pairs)} pairs of nodes without a common node have a high latency"
    worst = max(medians[pair] for pair in late.pairs)
    return Finding(
        "warning",
        f"{who} on {name}: a round trip takes {median(medians[pair] for pair in late.pairs):.0f} us (up to "
        f"{worst:.0f}), while {late.usual_us:.0f} us is usual: every step of a collective waits for it",
        (late.host,) if late.host else hosts,
        tuple(
            Evidence(
                pair,
                f"round trip from {pair[0]} to {pair[1]}",
                f"{medians[pair]:.0f} us",
                f"{late.usual_us:.0f} us",
                "one byte over TCP and back, the median",
            )
            for pair in late.pairs[:_LISTED]
        ),
        (
            Fix(
                "check what differs on this path: hops, tunnels, firewalls, power saving, load",
                (f"ethtool -c {name}", f"tracepath {places[late.pairs[0][1]][1]}   # on {late.pairs[0][0]}"),
            ),
        ),
    )


def _busy(host: str, late: LatePairs, of_network: Mapping[Pair, float]) -> Finding:
    network_of_host_us = median(of_network[pair] for pair in late.pairs)
    return Finding(
        "info",
        f"processes on {host} answer late: a round trip takes {late.median_us:.0f} us, while {late.usual_us:.0f} us is "
        f"usual, and its network {network_of_host_us:.0f} us: the cores are busy, the network is not the cause",
        (host,),
        tuple(
            Evidence(
                pair,
                f"quickest round trip from {pair[0]} to {pair[1]} that the kernel saw",
                f"{of_network[pair]:.0f} us",
                f"{late.median_us:.0f} us as the processes see it",
                "tcpi_min_rtt (TCP_INFO)",
            )
            for pair in late.pairs[:_LISTED]
        ),
        (Fix("see what else runs on this node", (f"uptime; top -b -n 1 | head -20   # on {host}",)),),
    )
