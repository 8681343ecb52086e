"""NC914 ib-link-or-fabric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import only_sockets, rails_apart, uses_infiniband
from ncclcheck.checks.logs._reruns import helped
from ncclcheck.checks.logs._view import culprits, heads, hosts_of_address, remarks, troubles
from ncclcheck.logs.messages.ib_status import status_of
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

_BOTH_ENDS = 2
_FATAL = re.compile(
    r"\bport (?:error|down)|fatal|catas|link|IBV_EVENT_(?:PORT_ERR|DEVICE_FATAL|QP_FATAL|CQ_ERR)",
    re.IGNORECASE,
)
# Of a queue pair alone: the other side's request does not fit to it (ibv_event_type_str of QP_REQ_ERR, QP_ACCESS_ERR)
_OF_A_REQUEST = re.compile(r"invalid request|access violation|QP_(?:REQ|ACCESS)_ERR", re.IGNORECASE)
_ADAPTER = re.compile(r"\b(?:mlx\d|bnxt_re|irdma|rdma|roce|ib)\w*\d")


@cause(
    "NC914",
    "ib-link-or-fabric",
    "An RDMA link, port or switch failed",
    explains=("rank-exception", "slow-rank-timeout", "ib-hca-selection", "firewall-blocked-ports"),
    between_nodes=True,
    fixes=(
        Fix(
            "check the cable, transceiver, adapter and switch port of this link: a port that is not "
            "Active, or whose error counters rise",
            (
                "ibstat; ibdiagnet; rdma link; mlxlink -d mlx5_0",
                "ncclcheck preflight --select rdma-port-down,rdma-rate-differs",
            ),
        ),
    ),
)
def ib_link_or_fabric(log: Log) -> Iterator[Suspect]:
    """A link, cable, port, switch or adapter of the RDMA fabric failed.

    ## Why it matters
    The adapter gives up a request (completion status 12: its retries are used up); the ranks of that link fail,
    all others wait. The other numbers mean other things, and the summary says which.

    ## How to fix
    Look at the port that is named, its cable and its switch port, and at the counters of errors.

    ## Source
    NCCL transport/net_ib (async events, completions): status 12 retry exceeded, 13 receiver not ready, 5 flushed.
    """
    if helped(log, "NCCL_IB_HCA"):
        return  # with other adapters all is well: it is their choice
    events = _fatal_events(log)
    down = remarks(log, "ib-port-down")
    hardware = remarks(log, "ib-hardware")
    completions = remarks(log, "ib-completion")
    lost = [
        remark
        for remark in completions
        if _speaks_for(remark) == "ib-link-or-fabric" and not rails_apart(remark.text)
    ]
    flushed = [remark for remark in completions if not _speaks_for(remark)]
    nothing_else = down and remarks(log, "rdma-wanted") and (troubles(log) or _missed_its_adapter(log))
    if (
        events
        or nothing_else
        or (down and (lost or flushed))
        or (hardware and (uses_infiniband(log) or lost))
    ):
        first = events or down or hardware
        yield suspect(
            "A port of the RDMA fabric is down or failed.",
            [*first, *lost],
            hosts=_both_ends(log, first, lost),
            at=(events or lost or first)[0].place,
        )
    elif listed := _listed_as_down(log, down):
        yield listed
    elif lost or flushed:
        peers = [
            host
            for remark in (lost or flushed)
            for host in hosts_of_address(log, _address(remark.values.get("address", "")))
        ]
        asked = {_address(remark.values.get("address", "")) for remark in lost or flushed} - {""}
        askers = {remark.place.host for remark in lost or flushed}
        if (
            not peers and len(asked) == 1
        ):  # several hosts fail to reach the same one, or one host knows no more
            peers = [*asked, *([host for host in askers if host] if len(askers) == 1 else [])]
        addresses = heads(remark.values.get("address", "a peer") for remark in lost or flushed)
        yield suspect(
            f"RDMA requests to {addresses} failed with status {heads(map(_status, lost or flushed))}.",
            lost or flushed,
            confidence="likely" if lost and not _comes_after_a_death(log, lost) else "possible",
            hosts=tuple(dict.fromkeys(peers)) if len(set(peers)) <= _BOTH_ENDS else (),
        )


def _missed_its_adapter(log: Log) -> bool:
    """Return True if all processes, of several hosts, used sockets, and a person looked at the adapter asked for."""
    asked = {name for remark in remarks(log, "rdma-wanted") for name in _ADAPTER.findall(remark.text)}
    looks = " ".join(remark.text for remark in remarks(log, "inspected"))
    hosts = {process.host for process in log.processes}
    return only_sockets(log) and len(hosts) > 1 and any(name in looks.split() for name in asked)


def _without_a_port(log: Log) -> list[Remark]:
    """Return the ports that are down of hosts without an active one, where a verb failed or only they used sockets.

    A second port of an adapter is often down, and nothing is wrong with it.
    """
    active = {remark.place.host for remark in remarks(log, "ib-active")}
    dead = [remark for remark in remarks(log, "ib-port-down") if remark.place.host not in active]
    hosts = {remark.place.host for remark in dead}
    fell_back = any(process.host in hosts and process.network == "Socket" for process in log.processes)
    others = any(process.devices and process.host not in hosts for process in log.processes)
    return dead if (fell_back and others) or remarks(log, "verbs-failed") else []


def _fatal_events(log: Log) -> list[Remark]:
    """Return the events of an adapter or its port that end its work; not of one request alone."""
    return [
        remark
        for remark in remarks(log, "ib-event-fatal", "ib-async-event")
        if _FATAL.search(remark.text) and not _OF_A_REQUEST.search(remark.text)
    ]


def _comes_after_a_death(log: Log, lost: Sequence[Remark]) -> bool:
    """Return True if the launcher said before that a worker had died: requests to it are then not answered."""
    return any(
        death.place.file == lost[0].place.file and death.place.line < lost[0].place.line
        for death in remarks(log, "worker-died")
    )


def _listed_as_down(log: Log, down: Sequence[Remark]) -> Suspect | None:
    """Return that ports are down, where RDMA failed or was not used with them, or where nothing else is wrong."""
    if dead := _without_a_port(log):
        return suspect(
            "No listed port of the adapter is active, and RDMA failed there or was not used.",
            dead,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in dead]),
        )
    if len(down) > 1 and remarks(log, "rdma-hardware") and troubles(log) and not remarks(log, "ib-active"):
        return suspect(
            "Ports of RDMA adapters are listed as down, and the log shows nothing else.",
            down,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in down]),
            at=down[-1].place,
            explains=(),
        )
    return None


def _both_ends(log: Log, first: Sequence[Remark], lost: Sequence[Remark]) -> tuple[str, ...]:
    """Return which hosts report the failed port and, if it is one host, the one peer that requests did not reach."""
    near = culprits(log, [remark.place for remark in first])
    asked = {_address(remark.values.get("address", "")) for remark in lost} - {""}
    if len(near) != 1 or len(asked) != 1:
        return near
    address = asked.pop()
    return tuple(dict.fromkeys((*near, *(hosts_of_address(log, address)[:1] or (address,)))))


def _speaks_for(remark: Remark) -> str:
    status = status_of(remark.values.get("status", ""))
    return status.cause if status else ""


def _status(remark: Remark) -> str:
    """Return the number with its name and what it means."""
    number = remark.values.get("status", "")
    status = status_of(number)
    return f"{number} ({status.name}: {status.means})" if status else number


def _address(text: str) -> str:
    return text.partition("<")[0]
