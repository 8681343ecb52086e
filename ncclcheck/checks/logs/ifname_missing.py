"""NC909 ifname-missing."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, remarks, settings
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_EITHER = (
    Fix(
        "look at the variable and the interfaces on that host, inside the container: set NCCL_SOCKET_IFNAME to a "
        "name or prefix that is there, or unset it; if there is only lo, give the container a network (--network host)",
        (
            "env | grep SOCKET_IFNAME; ip -brief address",
            "ncclcheck preflight --select ifname-no-match,interface-loopback",
        ),
    ),
)


@cause(
    "NC909",
    "ifname-missing",
    "The interface that the settings name does not exist",
    explains=("container-network", "rank-exception", "stale-config", "world-size-mismatch"),
    fixes=(
        Fix(
            "set NCCL_SOCKET_IFNAME to a name or prefix that matches an interface on every node; "
            "GLOO_SOCKET_IFNAME takes one exact name, no ^ or = syntax",
            (
                "ip -brief address   # on every node",
                "ncclcheck preflight --select ifname-no-match,gloo-ifname-syntax",
            ),
        ),
    ),
)
def ifname_missing(log: Log) -> Iterator[Suspect]:
    """NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME matches no interface on some node, or its syntax is wrong.

    ## Why it matters
    NCCL or Gloo finds no interface and ends; the other nodes have one and wait.

    ## How to fix
    Name an interface that every node has, or a prefix that fits all (eth, ib); Gloo takes exact names only, no
    ^ and no =.

    ## Source
    NCCL bootstrap.cc and misc/socket.cc; gloo transport/tcp/device.cc takes one exact name.
    """
    found = [
        remark
        for remark in remarks(log, "no-interface")
        if "same subnet" not in remark.text and "Warning: " not in remark.text
    ]
    families = remarks(log, "bad-family")
    value = next(iter(settings(log, "NCCL_SOCKET_IFNAME")), "")
    gloo = [remark for remark in found if remark.values.get("interface") or "ifa != nullptr" in remark.text]
    if gloo or (found and value):
        what = (
            f"{gloo[0].values.get('interface', '')!r} (GLOO_SOCKET_IFNAME)"
            if gloo
            else f"{value!r} (NCCL_SOCKET_IFNAME)"
        )
        hosts = {remark.place.host for remark in found if remark.place.host}
        yield suspect(
            f"No interface matches {what} on {', '.join(sorted(hosts)) or 'some node'}.",
            found,
            hosts=culprits(log, [remark.place for remark in found]),
        )
    elif found and not remarks(log, "no-subnet"):
        yield suspect(
            "NCCL found no interface: either NCCL_SOCKET_IFNAME, which the log does not show, matches none on this "
            "host, or the host or container has no network interface but loopback. Look at the variable first.",
            found,
            confidence="likely",
            hosts=culprits(log, [remark.place for remark in found]),
            fixes=_EITHER,
        )
    elif families and value:
        yield suspect(
            f"NCCL_SOCKET_IFNAME={value} matches no interface on some node, and NCCL continued without an address.",
            families,
            confidence="likely",
            hosts=_without_interface(log) or culprits(log, [family.place for family in families]),
            explains=("container-network", "rank-exception"),
        )


def _without_interface(log: Log) -> tuple[str, ...]:
    """Return the hosts that named an interface and then reported none that they use."""
    silent = [
        process
        for process in log.processes
        if "NCCL_SOCKET_IFNAME" in process.settings and not process.interface
    ]
    return culprits(log, [process.place for process in silent])
