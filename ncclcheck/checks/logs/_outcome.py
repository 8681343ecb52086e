"""How a job ended by its log, and which cause comes first: pure, over the suspects of all causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.logs._causes import CONFIDENCES, Suspect
from ncclcheck.checks.logs._culprits import attributed, without_a_word
from ncclcheck.checks.logs._view import alarms, finished_well, remarks
from ncclcheck.model.events import CommInit, Event, Log
from ncclcheck.model.finding import CheckRun, Finding

Outcome: TypeAlias = Literal["healthy", "named", "undetermined", "nothing"]
UNDETERMINED = "undetermined"


class Explained(Struct, frozen=True):
    """How the job ended, the findings in order of likelihood, and one sentence that says it."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    reason: str


def explained(log: Log, runs: Iterable[CheckRun]) -> Explained:
    """The verdict on a log, from the runs of all causes over it."""
    suspects = [one for run in runs for one in run.findings if isinstance(one, Suspect)]
    open_question = [one for one in suspects if one.slug == UNDETERMINED]
    ranked = ranking(log, [one for one in suspects if one.slug != UNDETERMINED])
    if finished_well(log):
        noted = tuple(_plain(replace(one, severity="warning")) for one in ranked)
        return Explained("healthy", noted, "the job says that it finished, and nothing says that it failed")
    if ranked and ranked[0].severity == "error":
        first, *others = ranked
        first = replace(first, hosts=attributed(log, first))
        findings = (_plain(first), *(_plain(replace(one, severity="warning")) for one in others))
        return Explained("named", findings, f"the cause: {first.slug}")
    asked = [replace(one, hosts=without_a_word(log)) for one in open_question]
    findings = tuple(_plain(one) for one in (*asked, *ranked))
    if open_question:
        return Explained("undetermined", findings, open_question[0].summary)
    if not _says_anything(log):
        return Explained(
            "nothing", findings, "nothing in these files is of NCCL, torch, a launcher or a program that ends"
        )
    how = (
        "the job says that it finished"
        if finished_well(log)
        else "nothing in the log says that the job failed"
    )
    return Explained("healthy", findings, how)


def ranking(log: Log, suspects: Sequence[Suspect]) -> list[Suspect]:
    """The suspects, the likeliest first.

    One that another explains away comes after it. Of the rest the surer comes first, and of equally sure ones the one
    whose line is earlier: the first error that is not an after-effect, not the loudest.
    """
    away = {
        slug
        for one in suspects
        for slug in one.explains
        if slug != one.slug and _may_explain(one, slug, suspects)
    }
    position = _positions(log)
    return sorted(
        suspects,
        key=lambda one: (
            one.slug in away,
            CONFIDENCES.index(one.confidence),
            position.get((one.at.file, one.at.line), (1 << 60)) if one.at else 1 << 60,
            one.code,
        ),
    )


def _may_explain(one: Suspect, slug: str, suspects: Sequence[Suspect]) -> bool:
    """True if the suspect is at least as sure as the one it explains: a mere possibility takes no certainty away."""
    others = [other for other in suspects if other.slug == slug]
    surest = min((CONFIDENCES.index(other.confidence) for other in others), default=len(CONFIDENCES))
    mine = CONFIDENCES.index(one.confidence)
    mutual = any(one.slug in other.explains for other in others)
    return mine < surest or (mine == surest and not mutual)


def _positions(log: Log) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for number, event in enumerate(log.events):
        found.setdefault((event.place.file, event.place.line), number)
    return found


def stuck(log: Log) -> tuple[Event, ...]:
    """Communicators that a rank began and did not complete, where ranks of the same log completed none or theirs.

    Only where the log ends without a word that the job finished: a log may also be cut before the end.
    """
    if remarks(log, "finished"):
        return ()
    open_starts: dict[tuple[str | None, int | None, str], CommInit] = {}
    for event in log.events:
        if isinstance(event, CommInit) and event.comm_id:
            key = (event.place.host, event.comm_rank, event.comm_id)
            if event.stage == "start":
                open_starts[key] = event
            else:
                open_starts.pop(key, None)
    return tuple(open_starts.values())


def _says_anything(log: Log) -> bool:
    return bool(log.events or log.processes or alarms(log))


def _plain(one: Suspect) -> Finding:
    return Finding(one.severity, one.summary, one.hosts, one.evidence, one.fixes, one.code, one.slug)
