"""NC708 path-slow."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ncclcheck.checks.host._paths import CheckedPath, checked_paths, none_given
from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

SLOW_MS = 100.0
LATE_MS = 10.0
TIMES_USUAL = 10.0
_OF_EVERY_PATH = "stat_ms"
_CALLS = ((_OF_EVERY_PATH, "the stat of a file"), ("read_ms", "opening and reading a file"))


@check("NC708", "path-slow", "The given paths answer quickly", needs=("paths",))
def path_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """No node takes far longer than the others to stat or read a file of a given path.

    ## Why it matters
    Every step of training waits for the slowest loader. A node that reaches the filesystem over another network, or
    whose client has problems, delays all others and looks like a slow rank.

    ## How to fix
    Compare the mount of the named node with the others' (`findmnt -T PATH`: server, protocol, options) and look for
    errors in its kernel log.

    ## Source
    Measured: the median of up to 512 lstat(2) and of up to 32 reads of 128 KiB. Slow: 100 ms and more, or ten times the
    usual value of the nodes and 10 ms and more. The limits are ncclcheck's own; what is in the node's cache answers
    quickly, so a slow filesystem may go unseen.
    """
    found = checked_paths(snapshot, "data", "code", "shared", "checkpoint")
    for wanted_path in found:
        for field, what in _CALLS:
            yield from _judged(wanted_path, field, what)
    yield from none_given(snapshot, found, "--data, --code, --shared-dir or --checkpoint")
    yield from not_reported(snapshot)


def _judged(wanted_path: CheckedPath, field: str, what: str) -> Iterator[Answer]:
    times: dict[str, float] = {}
    for place in wanted_path.places:
        value = getattr(place.fact, field)
        if not isinstance(value, Missing):
            times[place.host] = value
        elif field == _OF_EVERY_PATH and isinstance(place.fact.kind, Missing):
            yield NotKnown(f"{what} on {wanted_path.path}: {place.fact.kind}", (place.host,))
        elif field == _OF_EVERY_PATH or (
            value.missing != "absent" and not isinstance(place.fact.kind, Missing)
        ):
            yield NotKnown(f"{what} on {wanted_path.path}: {value}", (place.host,))
    usual = median(times.values()) if times else 0.0
    for host, value in times.items():
        if value >= SLOW_MS or (value >= LATE_MS and value >= TIMES_USUAL * usual):
            compared = f", while {usual:.2g} ms is usual" if value >= TIMES_USUAL * usual else ""
            yield Finding(
                "warning",
                f"{wanted_path.words} is slow on {host}: {what} takes {value:.0f} ms{compared}: loading "
                "data delays the job",
                (host,),
                (
                    Evidence(
                        (host,),
                        what,
                        f"{value:.3g} ms",
                        f"below {SLOW_MS:g} ms, and like the others",
                        "measured",
                    ),
                ),
                (
                    Fix(
                        "compare its mount with that of the other nodes",
                        (f"findmnt -T {wanted_path.path}", "dmesg | tail"),
                    ),
                ),
            )
