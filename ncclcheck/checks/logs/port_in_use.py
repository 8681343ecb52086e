"""NC906 port-in-use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import culprits, is_local, remarks, troubles
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_PORT = re.compile(
    r"\bport:? ?`?(?P<port>\d{2,5})\b|(?:\]|\b0\.0\.0\.0|\?UNKNOWN\?):(?P<bound>\d{2,5})\b", re.IGNORECASE
)


@cause(
    "NC906",
    "port-in-use",
    "The rendezvous or master port is in use",
    explains=("firewall-blocked-ports", "world-size-mismatch", "master-addr-wrong", "rank-exception"),
    fixes=(),
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
    port = next(
        (match["port"] or match["bound"] for remark in taken if (match := _PORT.search(remark.text))), ""
    )
    if taken:
        yield suspect(
            f"Port {port}, on which the job's store or rendezvous should listen, is in use (EADDRINUSE)."
            if port
            else "The port that the job's store or rendezvous should listen on is in use (EADDRINUSE).",
            taken,
            fixes=(_fix(port),),
            confidence="certain" if len(troubles(log)) else "likely",
            hosts=tuple(
                dict.fromkeys((*_listens(log), *culprits(log, [remark.place for remark in taken])[:1]))
            ),
        )


def _listens(log: Log) -> tuple[str, ...]:
    """Return the host on which rank 0 listens, where the log names it by a name."""
    named = {remark.values["address"] for remark in remarks(log, "master-address")}
    return tuple(named) if len(named) == 1 and not is_local(next(iter(named))) else ()


def _fix(port: str) -> Fix:
    """Return what to do, with the port that the log names."""
    return Fix(
        "choose another --master-port (MASTER_PORT), or end the process that holds the port: often a stale worker of "
        "an older job, or a second job with the same default port",
        (f"ss -ltnp 'sport = :{port or 'PORT'}'", "ncclcheck preflight --select master-port-in-use"),
    )
