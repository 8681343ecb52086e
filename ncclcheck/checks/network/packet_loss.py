"""NC219 packet-loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.hosts import named
from ncclcheck.checks.network._links import growth_text, not_connected
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.links.losses import LossyEnd, LossyPair, Lost, lossy_parts
from ncclcheck.measure.links.network_rates import Places, attempts
from ncclcheck.measure.links.outliers import Pair
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.snapshot import Probe, Snapshot

_ERROR_SHARE = 0.003
_LISTED = 12


@check("NC219", "packet-loss", "No packets get lost between the nodes", nodes=2, joined=True)
def packet_loss(snapshot: Snapshot) -> Iterator[Answer]:
    """Small packets on NCCL's interface arrive: none has to be sent again on a network that is otherwise idle.

    ## Why it matters
    TCP sends a lost packet again after 0.2 s or more, in which the whole collective waits. One node that loses 1 % of
    its packets makes small collectives several times slower, while a single large transfer still runs near the
    speed of the link.

    ## How to fix
    Look at the counters of the named card: damaged packets (`crc`) mean cable, transceiver or port; dropped or missed
    ones a ring buffer that is too small or a CPU that is too busy. Where no counter grows, a firewall rule, a switch or
    the network of the cloud provider drops them.

    ## Source
    TCP_INFO of the probes (tcp(7), linux/tcp.h): packets sent, and sent again. Packets that a transfer sends again
    are no proof, since full queues lose packets on a healthy network. They are the reason to try the pair with up to
    1,800 small round trips, in which the receiver also reports which packets it got twice (duplicate SACK, RFC 2883).
    """
    seen = chosen(snapshot)
    places: Places = {choice.host: (choice.name, choice.address) for choice in seen}
    probes = () if isinstance(snapshot.probes, Missing) else snapshot.probes
    parts = lossy_parts(probes, places)
    view = _View(snapshot, places, parts.by_pair)
    everywhere = {end.host for end in parts.ends} == set(places) and len(parts.ends) > 1
    if everywhere:
        yield _everywhere(view, parts.ends)
    else:
        for host in dict.fromkeys(end.host for end in parts.ends):
            yield _node_finding(view, [end for end in parts.ends if end.host == host])
    for pair in parts.pairs:
        yield _pair_finding(view, pair)
    yield from _unknown(places, probes)
    yield from not_connected(snapshot)
    yield from not_chosen(snapshot)


class _View(Struct, frozen=True):
    snapshot: Snapshot
    places: Places
    by_pair: dict[Pair, Lost]


def _unknown(places: Places, probes: Sequence[Probe]) -> Iterator[NotKnown]:
    """Yield what was not counted: hosts without a measured transfer, and pairs that could not be tried."""
    counted = set()
    for probe in attempts(probes, places, "bandwidth"):
        if probe.measured is not None and not isinstance(probe.measured.resent, Missing):
            counted |= {probe.from_host, probe.to_host}
    if uncounted := tuple(host for host in places if host not in counted):
        yield NotKnown("the packets that were sent again were not counted", uncounted)
    for probe in attempts(probes, places, "loss"):
        if probe.value is None:
            yield NotKnown(f"the round trips to {probe.to_host}: {probe.detail}", (probe.from_host,))


def _percent(lost: Lost) -> str:
    return f"{100 * lost.share:.2g} %"


def _severity(lost: Lost) -> Severity:
    return "error" if lost.share >= _ERROR_SHARE else "warning"


def _node_finding(view: _View, ends: Sequence[LossyEnd]) -> Finding:
    host, name = ends[0].host, view.places[ends[0].host][0]
    does = " and ".join(
        f"{_percent(end.total)} of the packets that it {'sends' if end.end == 'sender' else 'receives'}"
        for end in sorted(ends, key=lambda end: end.end)
    )
    worst = max((end.total for end in ends), key=lambda total: total.share)
    return Finding(
        _severity(worst),
        f"{host} loses {does} on {name}: a small collective waits 0.2 s or more for each of them",
        (host,),
        (
            *_evidence(view, [pair for end in ends for pair in end.pairs]),
            *growth_text(view.snapshot, host, name),
        ),
        (_fix(host, name),),
    )


def _everywhere(view: _View, ends: Sequence[LossyEnd]) -> Finding:
    total = Lost(sum(end.total.sent for end in ends), sum(end.total.lost for end in ends))
    hosts = tuple(view.places)
    names = "/".join(dict.fromkeys(name for name, _ in view.places.values()))
    return Finding(
        _severity(total),
        f"packets get lost between all nodes on {names}, {_percent(total)} of them: a small collective waits 0.2 s or "
        "more for each; no single node is the cause, so look at what they share: a switch, or a rule on all of them",
        hosts,
        _evidence(view, [pair for end in ends for pair in end.pairs]),
        (_fix(named(hosts), names.partition("/")[0]),),
    )


def _pair_finding(view: _View, lossy: LossyPair) -> Finding:
    source, target = lossy.pair
    two = len(view.places) == len(lossy.pair)
    which = "with only two nodes, either can be the cause" if two else "both lose none with other nodes"
    name = view.places[target][0]
    return Finding(
        _severity(lossy.total),
        f"{_percent(lossy.total)} of the packets from {source} to {target} get lost on {name} ({which}): a small "
        "collective waits 0.2 s or more for each of them",
        lossy.pair,
        (
            *_evidence(view, [lossy.pair]),
            *growth_text(view.snapshot, source, view.places[source][0]),
            *growth_text(view.snapshot, target, name),
        ),
        (_fix(f"{source} and {target}", name),),
    )


def _evidence(view: _View, pairs: Sequence[Pair]) -> tuple[Evidence, ...]:
    probes = () if isinstance(view.snapshot.probes, Missing) else view.snapshot.probes
    detail = {(probe.from_host, probe.to_host): probe.detail for probe in probes if probe.kind == "loss"}
    return tuple(
        Evidence(
            pair,
            f"small packets from {pair[0]} to {pair[1]}",
            f"{view.by_pair[pair].lost} of {view.by_pair[pair].sent} lost ({detail.get(pair, '')})",
            "none",
            "TCP_INFO of many small round trips",
        )
        for pair in pairs[:_LISTED]
    )


def _fix(where: str, name: str) -> Fix:
    return Fix(
        f"find out on {where} what drops packets: the card, a rule of the firewall, or the path to the switch",
        (
            f"ip -s link show {name}",
            f"ethtool -S {name}   # crc: cable or port; missed, no_buffer: ring too small (ethtool -g {name})",
            f"tc -s qdisc show dev {name}",
            "sudo nft list ruleset   # or: sudo iptables -L -v -n",
        ),
    )
