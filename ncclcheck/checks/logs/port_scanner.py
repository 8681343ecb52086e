"""NC942 port-scanner."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import alarms, finished_well, hosts_of, is_local, is_place, remarks
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_FEWEST_LETTERS = 4
_DOTS = 3
_FEWEST_PORTS = 3  # that a stranger tries, to be called a scan


@cause(
    "NC942",
    "port-scanner",
    "A foreign program connected to NCCL's sockets",
    explains=("rank-exception", "firewall-blocked-ports"),
    fixes=(
        Fix(
            "exclude the compute nodes from the scanner or health check, or let a firewall admit only the "
            "job's own nodes",
            ("journalctl | grep -i scan; ss -tnp",),
        ),
    ),
)
def port_scanner(log: Log) -> Iterator[Suspect]:
    """A foreign program connected to NCCL's sockets: a port scanner, a health check or another job.

    ## Why it matters
    NCCL's sockets are open to the network. NCCL rejects foreign bytes since 2.16, but they may still end a
    communicator.

    ## How to fix
    Keep scanners away from the nodes' ephemeral ports while jobs run.

    ## Source
    NCCL misc/socket.cc (socketFinalizeAccept: wrong magic or type).
    """
    found = remarks(log, "wrong-magic", "foreign-service")
    swept = () if found else _that_sweeps(log)
    if swept:
        address = swept[0].values["address"]
        yield suspect(
            f"{address} tried port after port of a node while it closed a connection to NCCL's socket.",
            swept,
            confidence="likely",
            hosts=(address,),
            explains=("rank-exception", "firewall-blocked-ports", "world-size-mismatch"),
        )
        return
    garbled = None if found else _as_a_size(log)
    if garbled:
        yield garbled
        return
    strangers = () if found else _reported_scans(log) or _of_another_network(log)
    if strangers:
        yield suspect(
            f"{strangers[0].values['address']} connected to NCCL's socket and closed it: it is no rank of the log.",
            strangers,
            confidence="likely",
            hosts=(strangers[0].values["address"].partition("<")[0],),
        )
    if found:
        # The magic was right: who speaks it is of this job, and ranks with another network want another socket.
        of_this_job = all("wrong type" in remark.text for remark in found)
        networks = {process.network.startswith("IB") for process in log.processes if process.network}
        if of_this_job and len(networks) > 1:
            return
        sent_text = next((text for remark in found if (text := as_text(remark.values.get("magic", "")))), "")
        yield suspect(
            "A program that is not part of this job connected to NCCL's socket"
            + (f" and sent {sent_text!r}." if sent_text else "."),
            found,
            confidence="possible"
            if of_this_job or finished_well(log)
            else "likely"
            if all("<unknown>" in remark.text for remark in found)  # Open MPI, of an unknown peer
            else "certain"
            if sent_text or alarms(log)
            else "likely",
            hosts=_stranger(log, found),
        )


def _as_a_size(log: Log) -> Suspect | None:
    """Return that NCCL took eight letters for the size of a request: what a stranger said at an allocator's port."""
    asked = {
        text: remark
        for remark in remarks(log, "garbled-size")
        if (text := as_text(f"{int(remark.values['bytes']):x}"))
    }
    if not asked:
        return None
    return suspect(
        f"NCCL took {next(iter(asked))!r} for the size of a request: a program that is not part of this job sent it.",
        list(asked.values()),
        confidence="likely",
        explains=("rank-exception", "cuda-oom", "firewall-blocked-ports"),
    )


def _stranger(log: Log, found: tuple[Remark, ...]) -> tuple[str, ...]:
    """Return the one name or address that closed a connection to who speaks, if it is of no node of the log."""
    speakers = {remark.place.host for remark in found}
    known = {process.address for process in log.processes}
    names = {
        peer
        for remark in remarks(log, "closed-by-peer")
        if remark.place.host in speakers
        and (peer := remark.values.get("address", "").partition("<")[0])
        and is_place(peer)
        and peer not in known
        and not is_local(peer)
        and peer.partition(".")[0] not in hosts_of(log)
    }
    return (names.pop(),) if len(names) == 1 else ()


def _that_sweeps(log: Log) -> tuple[Remark, ...]:
    """Return what the packet filter saw of a peer that closed a connection and tried several ports."""
    closed = " ".join(remark.text for remark in remarks(log, "closed-by-peer"))
    seen: dict[str, dict[str, Remark]] = {}
    for packet in remarks(log, "packet-log"):
        seen.setdefault(packet.values["address"], {}).setdefault(packet.values["port"], packet)
    for address, ports in seen.items():
        if len(ports) >= _FEWEST_PORTS and f"{address}<" in closed:
            return tuple(ports.values())
    return ()


def _reported_scans(log: Log) -> tuple[Remark, ...]:
    """Return the closed connections of a start, where the log reports a scan and the peer is not known as a node."""
    if not remarks(log, "scan"):
        return ()
    known = {process.address for process in log.processes}
    return tuple(
        remark
        for remark in remarks(log, "closed-by-peer")
        if (address := remark.values.get("address", "").partition("<")[0])[:1].isdigit()
        and address not in known
        and not is_local(address)
    )


def _of_another_network(log: Log) -> tuple[Remark, ...]:
    """Return closed connections of a start whose other end is in a network that no rank uses."""
    known = {".".join(process.address.split(".")[:2]) for process in log.processes if process.address}
    return tuple(
        remark
        for remark in remarks(log, "closed-by-peer")
        if known
        and (address := remark.values.get("address", "")).count(".") == _DOTS
        and ".".join(address.split(".")[:2]) not in known
        and not is_local(address.partition("<")[0])
        and len(known) == 1
    )


def as_text(magic: str) -> str:
    """The eight bytes that NCCL printed as a number, as the sender's text; empty where they are none."""
    try:
        raw = bytes.fromhex(magic.rjust(len(magic) + len(magic) % 2, "0"))[::-1]
    except ValueError:
        return ""
    text = raw.decode("ascii", "replace").strip("\x00\r\n")
    return text if len(text) >= _FEWEST_LETTERS and text.isprintable() and "\ufffd" not in text else ""
