"""NC906 port-in-use."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import alarms, culprits, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC906",
    "port-in-use",
    "The rendezvous or master port was free",
    explains=("firewall-blocked-ports", "world-size-mismatch", "master-addr-wrong", "rank-exception"),
    fixes=(
        Fix(
            "choose another --master-port (MASTER_PORT), or kill the process that holds the port: often a "
            "stale worker of an older job, or another service",
            (
                "ss -ltnp | grep PORT",
                "ncclcheck preflight --select master-port-in-use",
            ),
        ),
    ),
)
def port_in_use(log: Log) -> Iterator[Suspect]:
    """Another process holds the port of the rendezvous, so the job's server could not listen on it.

    ## Why it matters
    Rank 0 cannot serve the store and ends at once; the other ranks wait for it until their timeout.

    ## How to fix
    Give the job another port, or end the process that holds it: mostly an older job that is still alive, or a
    second job with the same default port.

    ## Source
    torch c10d/socket.cpp: SocketListenOp; errno EADDRINUSE of bind(2).
    """
    taken = [
        remark
        for remark in remarks(log, "address-in-use")
        if "ignoring the error" not in remark.text and "USE_AGENT_STORE" not in remark.text
    ]
    if taken:
        yield suspect(
            "The port that the job's store or rendezvous should listen on is in use (EADDRINUSE).",
            taken,
            confidence="certain" if len(alarms(log)) else "likely",
            hosts=culprits(log, [remark.place for remark in taken]),
        )
