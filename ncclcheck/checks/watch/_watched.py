"""What the checks of `watch` share: the decision on a job, its sentence, and the stacks as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.registry import Answer
from ncclcheck.measure.watching.decision_text import ranks_words, sentence_on
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable, NotKnown, Severity
from ncclcheck.model.job.watched import StackGroup, Watch, WatchDecision
from ncclcheck.model.snapshot import Snapshot

_MOST_GROUPS = 8
_MOST_FRAMES = 6


def decided(
    snapshot: Snapshot, decisions: Sequence[WatchDecision], severity: Severity, fixes: Sequence[Fix]
) -> Iterator[Answer]:
    """Yield a finding where the watcher decided one of `decisions`, or why there is nothing to judge."""
    watch = snapshot.watch
    if isinstance(watch, Missing):
        absent = watch.missing == "absent"
        yield NotApplicable(watch.detail) if absent else NotKnown(f"the job: {watch}")
    elif watch.decision in decisions:
        yield Finding(severity, sentence_on(watch), _hosts(watch), tuple(_evidence(watch)), tuple(fixes))


def _hosts(watch: Watch) -> tuple[str, ...]:
    """Return where to look: the culprits' nodes; without culprits the silent ones, or both ends of blocked paths."""
    links = [link for link in watch.blocked if link.unacknowledged]
    ends = [rank.host for rank in watch.culprits] or list(watch.silent)
    return tuple(dict.fromkeys(ends or [host for link in links for host in (link.host, link.peer)]))


def _evidence(watch: Watch) -> Iterator[Evidence]:
    hosts = _hosts(watch)
    for group in watch.groups[:_MOST_GROUPS]:
        what = "inside a collective" if group.in_collective else "outside of a collective"
        yield Evidence(
            hosts, f"stack of {ranks_words(group.ranks)}, {what}", _frames(group), "", "py-spy dump"
        )
    for remark in watch.remarks:
        yield Evidence(hosts, "not read", remark, "", "watch")
    if watch.evidence:
        yield Evidence(hosts, "kept", ", ".join(watch.evidence), "", "watch --dir")


def _frames(group: StackGroup) -> str:
    frames = [f"{frame.function} ({frame.file}:{frame.line})" for frame in group.frames[:_MOST_FRAMES]]
    return " < ".join(frames)
