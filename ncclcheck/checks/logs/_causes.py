"""Causes: checks over the log of a job. Each yields suspects, and names the causes that follow from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ncclcheck.checks.logs._remedies import FOLLOWS, remedies
from ncclcheck.checks.logs._view import culprits, remarks, troubles
from ncclcheck.checks.registry import Answer, Body, check
from ncclcheck.model.events import Event, Log, LogPosition
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, Severity
from ncclcheck.model.snapshot import Snapshot

Confidence: TypeAlias = Literal["certain", "likely", "possible"]
CONFIDENCES: tuple[Confidence, ...] = ("certain", "likely", "possible")
WORDS: dict[Confidence, str] = {
    "certain": "The log says so directly.",
    "likely": "This is the likely cause: the lines fit it, and nothing else in the log explains them.",
    "possible": "This is possible, but the log alone does not prove it.",
}
_SEVERITY: dict[Confidence, Severity] = {"certain": "error", "likely": "error", "possible": "warning"}
_MOST_EVIDENCE = 6
_LONGEST_SEEN = 300
_MOST_PLACES = 64


class Suspect(Finding, frozen=True):
    """A finding about a log, with what is needed to rank it among the others.

    `at` is the line that starts it; `explains` are slugs of causes whose lines follow from this one (None: those that
    the cause declares); `places` are the places of its lines. `between_nodes`: look at both ends. `in_doubt`: its
    lines do not state the cause themselves, so it is never reported as certain, wherever it ranks. `blames_nobody`: who
    speaks its lines is as innocent as all others.
    """

    confidence: Confidence = "likely"
    at: LogPosition | None = None
    explains: tuple[str, ...] | None = None
    places: tuple[LogPosition, ...] = ()
    between_nodes: bool = False
    in_doubt: bool = False
    blames_nobody: bool = False


CauseBody: TypeAlias = Callable[[Log], Iterable[Suspect] | None]


def cause(
    code: str,
    slug: str,
    title: str,
    *,
    fixes: Sequence[Fix],
    explains: Sequence[str] = (),
    topics: Sequence[str] = (),
    unless: str = "",
    beside: Sequence[str] = (),
    summary: str = "",
    between_nodes: bool = False,
    judges: bool = False,
    confidence: Confidence = "certain",
) -> Callable[[CauseBody], Body]:
    """Declare a cause: a check over `Snapshot.log`, not applicable where no log was read.

    `fixes` say what to do, and `explains` names the causes whose lines follow from this one. `between_nodes`: the
    cause lies on the path between two nodes. `judges`: what the tables say of a line
    does not count where the body has judged it. Where the decorated function has no body but its manual page, a line
    on one of `topics` is enough for the `summary`, except lines with the words of `unless`; lines on the topics
    `beside` are shown as further evidence, and
    `confidence` is how sure such a line makes it. Where it has a body, that body
    yields the suspects.
    """

    def declared(log: Log) -> Iterator[Suspect]:
        found = [line for line in remarks(log, *topics) if not unless or not re.search(unless, line.text)]
        if found:
            lines = [*found, *remarks(log, *beside)]
            yield suspect(
                summary, lines, confidence=confidence, hosts=culprits(log, [line.place for line in found])
            )

    def declare(body: CauseBody) -> Body:
        @wraps(body)
        def over_snapshot(snapshot: Snapshot) -> Iterator[Answer]:
            if isinstance(snapshot.log, Missing):
                yield NotApplicable(f"no log: {snapshot.log.detail or snapshot.log.missing}")
                return
            suspects = body(snapshot.log)
            known = list(declared(snapshot.log) if suspects is None else suspects)
            if all(found.confidence == "possible" for found in known):
                known = [*_by_what_helped(snapshot.log, slug), *known]
                judged = frozenset(place for found in known for place in found.places if judges)
                known = [*_in_nccls_words(snapshot.log, slug, judged), *known]
            for found in known:
                yield replace(
                    found,
                    fixes=found.fixes or tuple(fixes),
                    explains=tuple(explains) if found.explains is None else found.explains,
                    between_nodes=between_nodes,
                )

        return check(code, slug, title, subject="log")(over_snapshot)

    return declare


def _by_what_helped(log: Log, slug: str) -> Iterator[Suspect]:
    """Yield the suspect that a setting gets around, where the log says that it helped."""
    helped = remedies(log, slug)
    if helped:
        wrong = troubles(log)
        yield suspect(
            f"With another setting the job works ({helped[0].text.strip()[:120]}).",
            [*helped, *wrong[:2]],
            confidence="likely",
            at=wrong[0].place,
            explains=FOLLOWS,
        )


def _in_nccls_words(log: Log, slug: str, judged: frozenset[LogPosition]) -> Iterator[Suspect]:
    """Yield the suspect that NCCL's own warnings state, by its table, where no rule `judged` their lines."""
    for certainty in CONFIDENCES:
        matching = [
            remark
            for remark in remarks(log, "nccl-warn", "message")
            if (remark.values.get("cause"), remark.values.get("certainty")) == (slug, certainty)
            and remark.place not in judged
        ]
        if matching:
            means = matching[0].values["means"]
            yield suspect(
                f"{means[:1].upper()}{means[1:]}.",
                matching,
                confidence=certainty,
                hosts=culprits(log, [remark.place for remark in matching[:1]]),
            )
            return


def suspect(
    summary: str,
    events: Sequence[Event],
    *,
    fixes: Sequence[Fix] = (),
    confidence: Confidence = "certain",
    hosts: Sequence[str] = (),
    explains: Sequence[str] | None = None,
    at: LogPosition | None = None,
) -> Suspect:
    """Return a suspect whose evidence are the lines of `events`; it starts at `at`, else at the first of them.

    Its fixes, and what it explains, are those of its cause unless it has its own.
    """
    return Suspect(
        severity=_SEVERITY[confidence],
        summary=f"{summary} {WORDS[confidence]}",
        hosts=tuple(hosts),
        evidence=tuple(seen(event) for event in spread(events)),
        fixes=tuple(fixes),
        confidence=confidence,
        at=at or (events[0].place if events else None),
        explains=None if explains is None else tuple(explains),
        places=tuple(dict.fromkeys(event.place for event in events[:_MOST_PLACES])),
    )


def spread(events: Sequence[Event]) -> list[Event]:
    """Up to a handful of the events: one of each speaker and wording first, in their order."""
    by_speaker: dict[tuple[object, ...], Event] = {}
    for event in events:
        by_speaker.setdefault((event.place.file, event.place.line), event)
    distinct: dict[tuple[object, ...], Event] = {}
    for event in by_speaker.values():
        distinct.setdefault((type(event), event.place.rank, event.place.host, event.text[:40]), event)
    chosen = list(distinct.values())[:_MOST_EVIDENCE]
    return chosen or list(events[:1])


def as_likely(found: Suspect) -> Suspect:
    """Return the suspect reported as certain, with the words of a likely one."""
    summary = found.summary.replace(WORDS["certain"], WORDS["likely"])
    return replace(found, summary=summary, confidence="likely")


def seen(event: Event) -> Evidence:
    """One line of the log as evidence: who said it, and file:line."""
    place = event.place
    who = f"rank {place.rank}" if place.rank is not None else "the log"
    return Evidence(
        (place.host,) if place.host else (),
        who,
        event.text.strip()[:_LONGEST_SEEN],
        "",
        f"{place.file}:{place.line}",
    )
