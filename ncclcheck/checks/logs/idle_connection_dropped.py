"""NC902 idle-connection-dropped."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._view import both_ends, exceptions, failures, remarks, timeouts
from ncclcheck.model.events import Log
from ncclcheck.model.finding import Fix


@cause(
    "NC902",
    "idle-connection-dropped",
    "An idle connection was dropped",
    explains=("slow-rank-timeout", "firewall-blocked-ports", "rank-exception"),
    between_nodes=True,
    fixes=(
        Fix(
            "raise the idle timeout of the firewall or NAT between the nodes, or lower TCP keepalive; keep "
            "idle phases without collectives short",
            (
                "sysctl net.ipv4.tcp_keepalive_time net.netfilter.nf_conntrack_tcp_timeout_established",
                "sysctl -w net.ipv4.tcp_keepalive_time=60   # as root, to test",
            ),
        ),
    ),
)
def idle_connection_dropped(log: Log) -> Iterator[Suspect]:
    """A firewall or NAT dropped connections that had been idle.

    ## Why it matters
    Stateful devices drop connections without traffic after minutes; the next collective then waits for answers
    that never come.

    ## How to fix
    Raise the idle time of the firewall, send keepalives, or keep phases without collectives short.

    ## Source
    TCP: ETIMEDOUT on an established connection; net.ipv4.tcp_keepalive_time; conntrack time-outs.
    """
    broken = [failure for failure in failures(log, established=True) if failure.reason == "timed-out"]
    quiet = remarks(log, "quiet-phase")
    late = timeouts(log)
    lost = remarks(log, "store-lost")
    if broken:
        yield suspect(
            "A connection that worked before gets no more answers"
            + (
                ", after a phase without communication: something between the nodes dropped it while it was idle."
                if quiet
                else "."
            ),
            [*broken, *quiet],
            confidence="likely",
            hosts=both_ends(log, broken),
        )
    elif quiet and lost and not late and not exceptions(log):
        yield suspect(
            "A connection broke after a phase without communication: something between the nodes drops idle "
            "connections.",
            [*lost, *quiet],
            confidence="likely",
        )
    elif (
        quiet
        and len({timeout.place.rank for timeout in late}) > 1
        and all(timeout.layer == "gloo" for timeout in late)
    ):
        yield suspect(
            "After a phase without communication all ranks wait in the same collective, and none receives from "
            "the others: "
            "their idle connections were dropped.",
            [*quiet, *late],
            confidence="likely",
            at=late[0].place,
        )
