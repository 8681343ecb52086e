"""NC310 rdma-errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ncclcheck.checks.hosts import named, not_reported
from ncclcheck.checks.rdma._counter_growth import Growth, growth
from ncclcheck.checks.rdma_ports import NATIVE
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.hardware import PortCounters, RdmaCounters
from ncclcheck.model.snapshot import Node, Snapshot

_MOST_EVIDENCE = 12
# Every InfiniBand port has them, in every kernel: where they are missing, they could not be read.
_EXPECTED = ("symbol_error", "link_downed", "port_rcv_errors")
_BROKEN: dict[str, str] = {"link_downed": "the link went down"}
_CONGESTED = ("cnp", "ecn_marked", "slow_restart", "rnr_nak", "switch_relay")
_MEANINGS: dict[str, str] = {
    "link_error_recovery": "the link was retrained",
    "symbol_error": "bits were damaged on the cable",
    "port_rcv_errors": "packets arrived damaged",
    "port_rcv_remote_physical_errors": "packets were damaged on a link further away",
    "port_xmit_discards": "packets were discarded here",
    "local_link_integrity_errors": "the link had too many bit errors",
    "excessive_buffer_overrun_errors": "packets were lost because buffers were full",
    "out_of_sequence": "packets were lost or reordered in the network",
    "packet_seq_err": "the other end missed packets",
    "implied_nak_seq_err": "answers were lost",
    "duplicate_request": "the other end retransmitted",
    "local_ack_timeout_err": "the other end did not answer in time",
    "roce_adp_retrans": "packets were retransmitted",
    "roce_adp_retrans_to": "packets were retransmitted after a timeout",
    "rx_icrc_encapsulated": "packets arrived with a wrong checksum",
    "out_of_buffer": "packets were dropped because no receive was posted",
    "rnr_nak_retry_err": "the receiver was not ready",
}


class _Grown(Struct, frozen=True):
    host: str
    port: str
    counter: str
    growth: Growth
    before: int
    after: int


@check(
    "NC310",
    "rdma-errors",
    "No RDMA port counted errors during the run",
    needs=("rdma_counters",),
    alike=("rdma", "rdma_counters"),
    by_node=True,
)
def rdma_errors(snapshot: Snapshot) -> Iterator[Answer]:
    """The error counters of every RDMA port are the same after the run as before it.

    The check compares all counters for errors and for lost or retransmitted packets. A link that went down is an
    error; damaged and retransmitted packets are a warning; congestion marks (ECN, CNP), which RoCE uses to slow down
    senders, are information. The value before the run is not judged. A counter may wrap; after a reset, the new value
    counts; a counter at its maximum says nothing.

    ## Why it matters
    RDMA retransmits lost packets, so a bad cable, a dirty plug or a network that drops RoCE packets first makes the
    job slow, and causes an error (IBV_WC_RETRY_EXC_ERR, local_ack_timeout) only when it gets worse.

    ## How to fix
    Damaged packets and links that go down: clean or replace the cable or transceiver of the named port, and check the
    switch port at its other end. Retransmitted packets on RoCE without damage: cards and switches have different
    settings for flow control (PFC) or ECN.

    ## Source
    /sys/class/infiniband/*/ports/*/counters and hw_counters, read with the facts and again at the end of the run;
    Linux, drivers/infiniband/core/sysfs.c and hw/*/counters.c; NVIDIA, Understanding mlx5 Linux Counters. A run
    without RDMA traffic shows only what happens to an idle link.
    """
    grown: list[_Grown] = []
    for node, section in snapshot.known("rdma_counters"):
        yield from _unknown(node, section)
        for port in section.ports:
            grown += _of_port(node.host, port)
    for severity, counter, growths in _by_counter(grown):
        yield _finding(severity, counter, growths)
    for text, hosts in _uncertain(grown):
        yield NotKnown(text, hosts)
    known = list(snapshot.known("rdma_counters"))
    if known and not any(section.ports for _, section in known):
        yield NotApplicable(f"{named([node.host for node, _ in known])}: no RDMA device")
    yield from not_reported(snapshot)


def _unknown(node: Node, section: RdmaCounters) -> Iterator[NotKnown]:
    """Ports and counters of which there are not two readings."""
    missing: dict[str, list[str]] = {}
    for port in section.ports:
        name = _name(port)
        for reading in (port.before, port.after):
            if isinstance(reading, Missing):
                missing.setdefault(f"error counters: {reading}", []).append(name)
                break
        else:
            for counter, why in _unread(node, port):
                missing.setdefault(f"{counter}: {why}", []).append(name)
    for text, names in missing.items():
        yield NotKnown(f"{listed(names)}: {text}", (node.host,))


def _unread(node: Node, port: PortCounters) -> Iterator[tuple[str, str]]:
    before, after = _known_counters(port.before), _known_counters(port.after)
    for counter in sorted(before.keys() | after.keys()):
        for value in (before.get(counter), after.get(counter)):
            if value is None or isinstance(value, Missing):
                yield counter, "read only once" if value is None else str(value)
                break
    if _is_native(node, port):
        yield from (
            (counter, "not told") for counter in _EXPECTED if counter not in before.keys() | after.keys()
        )


def _known_counters(reading: Fact[dict[str, Fact[int]]]) -> dict[str, Fact[int]]:
    return {} if isinstance(reading, Missing) else reading


def _is_native(node: Node, port: PortCounters) -> bool:
    rdma = node.facts.rdma
    ports = () if isinstance(rdma, Missing) else rdma.ports
    return any(
        rdma_port.link_layer == NATIVE
        for rdma_port in ports
        if (rdma_port.device, rdma_port.port) == (port.device, port.port)
    )


def _name(port: PortCounters) -> str:
    return f"{port.device}:{port.port}"


def _of_port(host: str, port: PortCounters) -> Iterator[_Grown]:
    before, after = _known_counters(port.before), _known_counters(port.after)
    for counter in sorted(before.keys() & after.keys()):
        old, new = before[counter], after[counter]
        if not isinstance(old, Missing) and not isinstance(new, Missing):
            yield _Grown(host, _name(port), counter, growth(counter, old, new), old, new)


def _severity(counter: str) -> Severity:
    if counter in _BROKEN:
        return "error"
    return "info" if any(word in counter for word in _CONGESTED) else "warning"


def _by_counter(grown: Iterable[_Grown]) -> list[tuple[Severity, str, list[_Grown]]]:
    groups: dict[str, list[_Grown]] = {}
    for port_growth in grown:
        if port_growth.growth.count:
            groups.setdefault(port_growth.counter, []).append(port_growth)
    return [(_severity(counter), counter, group) for counter, group in groups.items()]


def _finding(severity: Severity, counter: str, grown_ports: list[_Grown]) -> Finding:
    hosts = tuple(dict.fromkeys(grown.host for grown in grown_ports))
    texts = [f"{grown.port} of {grown.host} by {_least(grown.growth)}" for grown in grown_ports]
    meaning = _BROKEN.get(counter) or _MEANINGS.get(counter)
    cost = (
        "the network is congested, and senders were slowed down"
        if severity == "info"
        else "every collective over it waits, until retries run out and the job ends"
    )
    return Finding(
        severity,
        f"{counter} grew during the run on {listed(texts, 4)}{f' ({meaning})' if meaning else ''}: {cost}",
        hosts,
        tuple(
            Evidence(
                (grown.host,),
                f"{counter} of {grown.port}",
                f"{grown.before}, then {grown.after}",
                "no growth",
                f"/sys/class/infiniband/{grown.port.replace(':', '/ports/')}/",
            )
            for grown in grown_ports[:_MOST_EVIDENCE]
        ),
        (_fix(counter, grown_ports[0]),),
    )


def _least(growth: Growth) -> str:
    return str(growth.count) if growth.is_certain else f"at least {growth.count}"


def _fix(counter: str, grown: _Grown) -> Fix:
    device = grown.port.partition(":")[0]
    look = (f"rdma statistic show link {grown.port.replace(':', '/')}", f"ibstat {device}")
    if _severity(counter) == "info":
        return Fix(
            "compare the congestion settings (ECN, DCQCN) of cards and switches, and look for other traffic",
            look,
        )
    return Fix("check the cable and transceiver of the port, and the switch port at its other end", look)


def _uncertain(grown: Iterable[_Grown]) -> list[tuple[str, tuple[str, ...]]]:
    """Counters that may have grown by more than is seen, and of which nothing is said yet."""
    found: dict[tuple[str, str], list[str]] = {}
    for port_growth in grown:
        if not port_growth.growth.is_certain and not port_growth.growth.count:
            why = (
                "was reset during the run"
                if port_growth.growth.was_reset
                else f"is at its maximum, {port_growth.after}"
            )
            found.setdefault((port_growth.host, f"{port_growth.counter} {why}"), []).append(port_growth.port)
    return [(f"{listed(ports)}: {text}", (host,)) for (host, text), ports in found.items()]
