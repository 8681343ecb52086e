"""NC908 loopback-interface."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import as_line, distinct_hosts
from ncclcheck.checks.logs._view import culprits, exceptions, failures, hosts_of, is_local, remarks, troubles
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import Log, Remark
from ncclcheck.model.finding import Fix

# Of a job whose pods have roles (Kubeflow)
_POD = re.compile(r"-(?:master|worker|launcher|chief|ps)-\d{1,5}$")
_NODES = re.compile(r"--nnodes[ =](?:\d{1,5}:)?(?:[2-9]|\d\d)")


@cause(
    "NC908",
    "loopback-interface",
    "A rank advertised a loopback address",
    explains=(
        "firewall-blocked-ports",
        "wrong-interface",
        "stale-config",
        "rank-exception",
        "world-size-mismatch",
    ),
    fixes=(
        Fix(
            "set NCCL_SOCKET_IFNAME / GLOO_SOCKET_IFNAME to the cluster interface; an exclusion (^docker0) "
            "must also exclude lo; correct /etc/hosts where the host name is 127.0.1.1",
            (
                "grep 127.0 /etc/hosts; hostname -I",
                "ncclcheck preflight --select interface-loopback,hostname-loopback,ifname-excludes-into-loopback",
            ),
        ),
    ),
)
def loopback_interface(log: Log) -> Iterator[Suspect]:
    """A rank advertised a loopback address (lo, 127.x) to ranks on other nodes.

    ## Why it matters
    Each node then connects to itself, and is refused or reaches the wrong process.

    ## How to fix
    Make the host name resolve to the node's own address, and let NCCL_SOCKET_IFNAME name the real interface (an
    exclusion list must hold lo too).

    ## Source
    NCCL misc/socket.cc: an exclusion list that lacks lo makes lo eligible; gloo: the address of the host name,
    127.0.1.1 on Debian.
    """
    at_loopback = [
        process
        for process in log.processes
        if is_local(process.address)
        or process.interface == "lo"
        or (not process.interface and process.sockets[:1] and process.sockets[0].startswith("lo:"))
    ]
    failed = [failure for failure in failures(log) if failure.layer != "store" and is_local(failure.address)]
    fallback = remarks(log, "loopback-fallback") or _own_name(log)
    several = len(hosts_of(log)) > 1 or any(
        (process.ranks or 0) > (process.local_ranks or process.ranks or 0) for process in at_loopback
    )
    several = several or any(_NODES.search(remark.text) for remark in remarks(log, "rdzv-endpoint"))
    several = several or any(_POD.search(process.host) for process in at_loopback)
    if (
        failed
        or (at_loopback and several and (troubles(log) or not shows_work(log)))
        or (fallback and troubles(log))
    ):
        yield suspect(
            "A loopback address was advertised to ranks on other nodes, so they connect to themselves.",
            [
                *(
                    as_line(process, f"Using {process.interface}:{process.address}")
                    for process in at_loopback[:2]
                ),
                *failed,
                *fallback,
            ],
            confidence="certain" if failed or at_loopback else "likely",
            at=(failed or troubles(log) or at_loopback)[0].place,
            hosts=distinct_hosts(at_loopback)
            or tuple(dict.fromkeys(remark.values["name"] for remark in remarks(log, "hosts-file")))[:2]
            or culprits(log, [event.place for event in fallback or failed]),
        )


def _own_name(log: Log) -> tuple[Remark, ...]:
    """Return the loopback addresses of hosts' own names, where Gloo, which takes them, connects in vain.

    So do other programs, which say where they listen.
    """
    gloo = [event for event in troubles(log) if "connectFullMesh" in event.text]
    at_loopback = remarks(log, "listens-at-loopback")
    refused = [event for event in exceptions(log, "ordinary", "after-effect") if "refused" in event.text]
    if gloo:
        return remarks(log, "hosts-file")
    if at_loopback and refused and (remarks(log, "hosts-file") or len(hosts_of(log)) > 1):
        return (*at_loopback, *remarks(log, "hosts-file"))
    return ()
