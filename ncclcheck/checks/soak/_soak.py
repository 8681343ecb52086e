"""What the checks of `soak` share."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import soak_of
from ncclcheck.measure.soak.soak_limits import LEAST_BLOCKS, too_few, too_noisy
from ncclcheck.model.benchmarks.soak import EventKind, SoakEvent
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, NotKnown
from ncclcheck.model.snapshot import Snapshot

SOURCE = "ncclcheck soak"
_MOST_COUNTERS = 8


def events_of(snapshot: Snapshot, kind: EventKind) -> list[SoakEvent]:
    """Return the events of that kind."""
    soak = soak_of(snapshot)
    return [] if soak is None else [event for event in soak.events if event.kind == kind]


def unlearned(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield of which collectives too few blocks were measured to tell what is usual, and to judge the rest."""
    soak = soak_of(snapshot)
    if soak is None or isinstance(snapshot.bench, Missing) or soak.blocks < LEAST_BLOCKS:
        return
    for words in too_few(soak, snapshot.bench.plan.ops):
        yield NotKnown(f"{words} are too few to tell: {LEAST_BLOCKS} at least")


def unseen(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield of which collectives the noise hides drops that were asked for."""
    soak = soak_of(snapshot)
    if soak is not None and soak.blocks >= LEAST_BLOCKS:
        yield from map(NotKnown, too_noisy(soak))


def time_words(seconds: float) -> str:
    """Return a time since the series began: "0:12:30"."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def span_words(event: SoakEvent) -> str:
    """Return when it was: "from 0:12:30 to 0:15:40"."""
    until = "on, until the end" if event.to_s is None else f"to {time_words(event.to_s)}"
    return f"from {time_words(event.from_s)} {until}"


def evidence(event: SoakEvent) -> tuple[Evidence, ...]:
    """Return when it was, and the counters that moved meanwhile."""
    found = [
        Evidence(event.hosts, event.kind, event.summary, "a stable series", f"{SOURCE}, {span_words(event)}")
    ]
    found += [
        Evidence((host,), "counter", text, "as before", SOURCE)
        for host, _, text in (counter.partition(": ") for counter in event.counters[:_MOST_COUNTERS])
    ]
    return tuple(found)
