"""NC711 clock-unsynced."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.snapshot import Snapshot


@check("NC711", "clock-unsynced", "The clock of every node is synchronised", needs=("clock",))
def clock_unsynced(snapshot: Snapshot) -> Iterator[Answer]:
    """The kernel of every node says that its clock is synchronised, whichever daemon does it.

    It is a warning if other nodes are synchronised. If none is, it is information: virtual machines whose hypervisor
    sets the clock look the same. clock-offset measures how far the clocks are apart.

    ## Why it matters
    A clock without a time daemon drifts by seconds a day. Then certificates and Kerberos tickets are rejected, time
    stamps on shared filesystems are wrong, and logs of several nodes cannot be put in order.

    ## How to fix
    Start chronyd, systemd-timesyncd or ntpd on the host (a container uses its host's clock).

    ## Source
    adjtimex(2): STA_UNSYNC in the status, or the state TIME_ERROR. Read with modes 0, which changes nothing.
    """
    known = list(snapshot.known("clock"))
    off = tuple(node.host for node, clock in known if not clock.synchronised)
    if off:
        synchronised = tuple(node.host for node, clock in known if clock.synchronised)
        contrast = f", while {named(synchronised)} {verb(synchronised, 'is', 'are')}" if synchronised else ""
        yield Finding(
            "warning" if synchronised else "info",
            f"the clock of {named(off)} is not synchronised{contrast}: it drifts by seconds a day, "
            "and time stamps of files and logs are wrong",
            off,
            (
                Evidence(
                    off, "kernel clock", "STA_UNSYNC or TIME_ERROR", "synchronised", "adjtimex, only read"
                ),
            ),
            (
                Fix(
                    "start a time daemon on the host",
                    ("timedatectl", "systemctl enable --now chronyd   # or systemd-timesyncd"),
                ),
            ),
        )
    yield from not_reported(snapshot)
