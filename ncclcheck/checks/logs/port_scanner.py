"""NC942 port-scanner."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import alarms, finished_well, remarks
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix

_FEWEST_LETTERS = 4


@cause(
    "NC942",
    "port-scanner",
    "No foreign connection reached NCCL's sockets",
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
    if found:
        # The magic was right: who speaks it is of this job, and ranks with another network want another socket.
        of_this_job = all("wrong type" in remark.text for remark in found)
        networks = {process.network.startswith("IB") for process in log.processes if process.network}
        if of_this_job and len(networks) > 1:
            return
        said = next((text for remark in found if (text := as_text(remark.values.get("magic", "")))), "")
        yield suspect(
            "A program that is not part of this job connected to NCCL's socket"
            + (f" and sent {said!r}." if said else "."),
            found,
            confidence="possible" if finished_well(log) else "certain" if said or alarms(log) else "likely",
        )


def as_text(magic: str) -> str:
    """The eight bytes that NCCL printed as a number, as the sender's text; empty where they are none."""
    try:
        raw = bytes.fromhex(magic.rjust(len(magic) + len(magic) % 2, "0"))[::-1]
    except ValueError:
        return ""
    text = raw.decode("ascii", "replace").strip("\x00\r\n")
    return text if len(text) >= _FEWEST_LETTERS and text.isprintable() and "\ufffd" not in text else ""
