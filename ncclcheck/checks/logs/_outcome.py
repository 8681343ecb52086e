"""How a job ended by its log, and the order of its causes. Pure, over the suspects of all causes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.logs._causes import CONFIDENCES, Suspect, as_likely
from ncclcheck.checks.logs._culprits import (
    asked_after,
    attributed,
    closed_it,
    gone_tasks,
    lost_nodes,
    rejected_by_cuda,
    stalled,
    without_a_word,
)
from ncclcheck.checks.logs._network import is_without_p2p, only_sockets, without_gpudirect
from ncclcheck.checks.logs._reruns import mended_by_version
from ncclcheck.checks.logs._view import fell_back, finished_well, remarks
from ncclcheck.checks.logs._works import (
    is_last_of_its_host,
    measured_apart,
    served_after,
    slowness,
    unopened,
    went_on_after,
)
from ncclcheck.model.events import AnyEvent, CommInit, Event, Log, PythonException, Remark
from ncclcheck.model.finding import CheckRun, Finding

Outcome: TypeAlias = Literal["healthy", "named", "undetermined", "nothing"]
UNDETERMINED = "undetermined"
_PEER_MEMORY = re.compile("memory_peers|peermem")
# A job goes on, over slower ways.
_SLOWS = (
    "rdma-userspace-missing",
    "gdr-unavailable",
    "stale-config",
    "ib-link-or-fabric",
    "routing-asymmetric",
    "net-plugin-config",
)
# Who has one of these does not work on; a slow way, a wrong setting or a worn link may show much later.
_ENDS_AT_ONCE = frozenset(
    {
        "firewall-blocked-ports",
        "master-addr-wrong",
        "hostname-resolution",
        "k8s-dns-or-mesh",
        "port-in-use",
        "ifname-missing",
        "container-network",
        "world-size-mismatch",
        "nccl-library-conflict",
        "duplicate-gpu",
        "gpu-visibility",
        "p2p-broken",
        "cuda-oom",
        "rank-exception",
        "data-or-file-missing",
        "net-plugin-config",
        "python-env",
    }
)


# No server is ready whose parts do not reach each other.
_OF_REACH = frozenset(
    {"firewall-blocked-ports", "master-addr-wrong", "hostname-resolution", "k8s-dns-or-mesh"}
)


class Explained(Struct, frozen=True):
    """How the job ended, the findings in order of likelihood, and one sentence that says it."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    reason: str


def explained(log: Log, runs: Iterable[CheckRun]) -> Explained:
    """Return the verdict on a log, from the runs of all causes over it; it is not fine where lines were left out."""
    found = _explained(log, runs)
    if found.outcome == "healthy" and log.dropped:
        return Explained("undetermined", found.findings, not_looked_at(log))
    return found


def not_looked_at(log: Log) -> str:
    """Return a sentence about the lines that were too many."""
    return f"{log.dropped} lines that may mean something were not looked at: too many such lines stand before them"


def _explained(log: Log, runs: Iterable[CheckRun]) -> Explained:
    suspects = [finding for run in runs for finding in run.findings if isinstance(finding, Suspect)]
    open_question = [suspect for suspect in suspects if suspect.slug == UNDETERMINED]
    ranked = ranking(log, [suspect for suspect in suspects if suspect.slug != UNDETERMINED])
    ranked = [
        *(suspect for suspect in ranked if not _got_over(log, suspect)),
        *(replace(suspect, severity="warning") for suspect in ranked if _got_over(log, suspect)),
    ]
    if fell_back(log) and not (only_sockets(log) and slowness(log)):
        ranked = [
            replace(suspect, severity="warning") if suspect.slug == "net-plugin-config" else suspect
            for suspect in ranked
        ]
    worked = (
        finished_well(log)
        and not _was_slow(log, ranked)
        and not measured_apart(log)
        and not _worked_around(log, ranked)
    )
    if worked and not open_question:
        noted = tuple(_plain(replace(suspect, severity="warning", hosts=())) for suspect in ranked)
        return Explained(
            "healthy", noted, "the log shows that the job worked, and nothing after that says that it failed"
        )
    if worked:
        ranked = [replace(suspect, severity="warning") for suspect in ranked]
    if ranked and ranked[0].severity == "error":
        first, *further = ranked
        first = replace(first, hosts=attributed(log, first))
        if first.confidence == "certain" and _is_doubtful(log, first, further):
            first = as_likely(first)
        findings = (_plain(first), *(_plain(replace(suspect, severity="warning")) for suspect in further))
        return Explained("named", findings, f"the cause: {first.slug}")
    missing = next((found.hosts for found in ranked if found.slug == "slow-rank-timeout"), ())
    hosts = (
        lost_nodes(log)
        or stalled(log)
        or gone_tasks(log)
        or without_a_word(log)
        or missing
        or closed_it(log)
        or rejected_by_cuda(log)
        or asked_after(log)
    )
    asked = [replace(suspect, hosts=suspect.hosts or hosts) for suspect in open_question]
    findings = tuple(_plain(suspect) for suspect in (*asked, *ranked))
    if open_question:
        return Explained("undetermined", findings, open_question[0].summary)
    if not _says_anything(log):
        return Explained(
            "nothing",
            findings,
            "these files have no line of NCCL, torch or a launcher, and none of a program that failed",
        )
    how = (
        "the log says that the job finished"
        if finished_well(log)
        else "nothing in the log says that the job failed"
    )
    return Explained("healthy", findings, how)


def _got_over(log: Log, suspect: Suspect) -> bool:
    """Return True if the program worked on after all lines of a cause that would have kept it from working.

    What it did with another setting, which got around the cause, does not count.
    """
    # nor do results of processes that measured each for itself: they are of another measurement than the one asked for
    helped = {
        remark.place
        for remark in (*remarks(log, "workaround", "remedy", "mpi-startup"), *measured_apart(log))
    }
    return (
        helped.isdisjoint(suspect.places)
        and suspect.slug in _ENDS_AT_ONCE
        and bool(suspect.places)
        and all(
            (went_on_after(log, place) and not is_last_of_its_host(log, place))
            or (suspect.slug in _OF_REACH and served_after(log, place))
            for place in suspect.places
        )
    )


def _worked_around(log: Log, ranked: Sequence[Suspect]) -> bool:
    """Return True if the job only worked with a setting that gets around its first cause."""
    first = ranked[0] if ranked else None
    if first is not None and first.slug == "nccl-or-driver-bug" and mended_by_version(log):
        return True
    helped = {remark.place for remark in remarks(log, "workaround")}
    helped |= {process.place for process in log.processes if is_without_p2p(process)}
    return first is not None and first.severity == "error" and not helped.isdisjoint(first.places)


def _is_doubtful(log: Log, first: Suspect, further: Sequence[Suspect]) -> bool:
    """Return True if the log leaves room for doubt about a cause that its own line states.

    The line only fits the cause, the lines fit another cause too that does not follow from this one, an error that
    nobody knows stands before it, or the program worked on after all of its lines.
    """
    if first.in_doubt:
        return True
    follows = frozenset(first.explains or ())
    if any(rival.confidence != "possible" and rival.slug not in (*follows, first.slug) for rival in further):
        return True
    if _comes_after_another(log, first):
        return True
    return bool(first.places) and all(went_on_after(log, place) for place in first.places)


def _comes_after_another(log: Log, first: Suspect) -> bool:
    """Return True if an error of another kind stands before all lines of a cause in its file."""
    begins = min((place.line for place in first.places), default=0)
    of_it = (first.slug, *(first.explains or ()))
    return any(
        _is_of_something_else(event, of_it)
        for event in log.events
        if begins and event.place.file == first.places[0].file and event.place.line < begins
    )


def _is_of_something_else(event: AnyEvent, of_it: Sequence[str]) -> bool:
    """Return True for an error that no table knows, one with another cause, and a rank's own exception."""
    if isinstance(event, PythonException):
        return event.kind == "ordinary"
    if not isinstance(event, Remark):
        return False
    if event.topic == "error-line":
        return not event.text.startswith("Traceback")
    return (
        event.topic in ("nccl-warn", "message")
        and event.values.get("kind") not in ("harmless", "consequence")
        and event.values.get("cause") not in of_it
    )


def _was_slow(log: Log, ranked: Sequence[Suspect]) -> bool:
    """Return True if the log shows both that a job which finished was slow and why."""
    first = ranked[0] if ranked else None
    return (
        first is not None
        and first.slug in _SLOWS
        and (first.slug != "net-plugin-config" or only_sockets(log))
        and first.severity == "error"
        and bool(
            slowness(log)
            or unopened(log)
            or (first.slug == "rdma-userspace-missing" and remarks(log, "no-libibverbs"))
            or without_gpudirect(log)
            or (first.slug == "ib-link-or-fabric" and only_sockets(log))
            or any(_PEER_MEMORY.search(remark.text) for remark in remarks(log, "missing-file"))
        )
    )


def ranking(log: Log, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects, the likeliest first.

    One that another explains away comes after it. Of the rest the surer comes first, and of equally sure ones the one
    whose line is earlier: the first error that is not an after-effect, not the loudest.
    """
    away = {
        slug
        for suspect in suspects
        for slug in (suspect.explains or ())
        if slug != suspect.slug and _may_explain(suspect, slug, suspects)
    }
    position = _positions(log)
    return sorted(
        suspects,
        key=lambda suspect: (
            suspect.slug in away,
            CONFIDENCES.index("likely" if suspect.in_doubt else suspect.confidence),
            position.get((suspect.at.file, suspect.at.line), (1 << 60)) if suspect.at else 1 << 60,
            suspect.code,
        ),
    )


def _may_explain(stronger: Suspect, slug: str, suspects: Sequence[Suspect]) -> bool:
    """Return True if the suspect is at least as sure as the one it explains."""
    weaker = [suspect for suspect in suspects if suspect.slug == slug]
    surest = min((CONFIDENCES.index(suspect.confidence) for suspect in weaker), default=len(CONFIDENCES))
    mine = CONFIDENCES.index(stronger.confidence)
    mutual = any(stronger.slug in (suspect.explains or ()) for suspect in weaker)
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


def cut_short(log: Log) -> tuple[Event, ...]:
    """Return the last start of a communicator, where the log has no line of the program after it.

    Such a log is of a job that hangs right after its start, or it is cut: it shows neither work nor an end.
    """
    begun = [event for event in log.events if isinstance(event, CommInit)]
    if begun and begun[-1].stage == "destroy":
        return ()
    last_word = max(log.words, key=lambda word: (word.last.file, word.last.line), default=None)
    if last_word is not None and last_word.last_text.rstrip().endswith("Rendezvous'ing worker group"):
        return (Remark(last_word.last, last_word.last_text, "used"),)
    if not begun or not log.words or remarks(log, "finished"):
        return ()  # a file of NCCL's own messages (NCCL_DEBUG_FILE) has no line of the program at all
    last = {event.place.file: event for event in begun}
    spoke = any(
        word.last.file not in last or word.last.line > last[word.last.file].place.line for word in log.words
    )
    return () if spoke else tuple(last.values())


def _says_anything(log: Log) -> bool:
    return bool(log.events or log.processes or log.works)


def _plain(suspect: Suspect) -> Finding:
    return Finding(
        suspect.severity,
        suspect.summary,
        suspect.hosts,
        suspect.evidence,
        suspect.fixes,
        suspect.code,
        suspect.slug,
    )
