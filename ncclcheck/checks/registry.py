"""The registry of checks: found by walking this package, run over a Snapshot, each ending as a CheckRun."""

from __future__ import annotations

import importlib
import pkgutil
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.hosts import job_size, not_reported, unread
from ncclcheck.checks.kinds import one_of_each_kind, without_silent_kinds
from ncclcheck.model.errors import UsageError
from ncclcheck.model.finding import SEVERITIES, CheckRun, Finding, NotApplicable, NotKnown, Outcome
from ncclcheck.model.snapshot import Snapshot

Answer: TypeAlias = Finding | NotKnown | NotApplicable
Body: TypeAlias = Callable[[Snapshot], Iterable[Answer]]
Subject: TypeAlias = Literal["nodes", "log", "job"]
OfImages: TypeAlias = Literal[False, True, "only"]
NEEDS_NODES = "it needs the hardware, the kernel or the peers of a run, and an image has none"
OF_IMAGES = "it judges an image before there is a node: preflight --image"
_CHECK_ATTRIBUTE = "__ncclcheck_check__"


class Check(Struct, frozen=True):
    """One check. `needs` names sections of NodeFacts: where one is Missing the check cannot pass.

    `nodes` is the smallest job the question makes sense for; `joined` says that it needs nodes of one run.
    `subject` is what it judges: nodes and their network, the logs of a job, or the job that runs.
    A slug is used once for each.
    `image`: it can judge a container image too, before there is a node; "only": it judges nothing else.
    `not_in_image` says why it cannot. `demands` are the keys or sections of a policy that it judges.
    `alike`: all sections that it reads, if one node of each kind shows whether there is a finding (`kinds`).
    `by_node`: and if what it says names and counts only the nodes of the kinds that it has something to say of.
    """

    code: str
    slug: str
    title: str
    needs: tuple[str, ...]
    nodes: int
    joined: bool
    manual: str
    body: Body
    subject: Subject = "nodes"
    image: OfImages = False
    not_in_image: str = NEEDS_NODES
    demands: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    by_node: bool = False


class Selection(Struct, frozen=True):
    """Which checks run and how they count, as the user said: codes, code prefixes or slugs.

    `why` are the reasons for what is ignored or demoted, where another than the command line says so.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    demote: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    why: dict[str, str] = {}


def check(
    code: str,
    slug: str,
    title: str,
    *,
    needs: Sequence[str] = (),
    nodes: int = 1,
    joined: bool = False,
    subject: Subject = "nodes",
    image: OfImages = False,
    not_in_image: str = NEEDS_NODES,
    demands: Sequence[str] = (),
    alike: Sequence[str] = (),
    by_node: bool = False,
) -> Callable[[Body], Body]:
    """Declare the decorated function the body of a check; its docstring is the manual page."""

    def declare(body: Body) -> Body:
        manual = (body.__doc__ or "").strip()
        made = Check(
            code,
            slug,
            title,
            tuple(needs),
            nodes,
            joined,
            manual,
            body,
            subject,
            image,
            not_in_image,
            tuple(demands),
            tuple(alike),
            by_node,
        )
        setattr(body, _CHECK_ATTRIBUTE, made)
        return body

    return declare


@cache
def all_checks(subject: Subject = "nodes") -> tuple[Check, ...]:
    """Every check that judges `subject`, by code. Raises ValueError when a code or slug is used twice."""
    return tuple(definition for definition in _declared() if definition.subject == subject)


@cache
def _declared() -> tuple[Check, ...]:
    package = importlib.import_module("ncclcheck.checks")
    found: dict[str, Check] = {}
    for module_info in pkgutil.walk_packages(package.__path__, "ncclcheck.checks."):
        module = importlib.import_module(module_info.name)
        for value in vars(module).values():
            candidate = getattr(value, _CHECK_ATTRIBUTE, None)
            if isinstance(candidate, Check) and candidate.body.__module__ == module_info.name:
                taken = {
                    registered.slug
                    for registered in found.values()
                    if registered.subject == candidate.subject
                }
                if candidate.code in found or candidate.slug in taken:
                    raise ValueError(f"check {candidate.code} ({candidate.slug}) is declared twice")
                found[candidate.code] = candidate
    return tuple(found[code] for code in sorted(found))


def every_check() -> tuple[Check, ...]:
    """Return every check of every subject (nodes, logs, running jobs), by code."""
    return _declared()


def matching(names: Iterable[str], subject: Subject = "nodes") -> frozenset[str]:
    """Codes of the checks of `subject` that `names` (codes, code prefixes or slugs) mean.

    Raises UsageError for an unknown name.
    """
    codes: set[str] = set()
    for name in names:
        hits = {
            candidate.code
            for candidate in all_checks(subject)
            if candidate.slug == name.lower().replace("_", "-") or candidate.code.startswith(name.upper())
        }
        if not hits or not name:
            raise UsageError(f"unknown check {name!r}: 'ncclcheck checks' lists codes and slugs")
        codes |= hits
    return frozenset(codes)


def run_checks(snapshot: Snapshot, selection: Selection, subject: Subject = "nodes") -> tuple[CheckRun, ...]:
    """Return the outcome of every check of `subject` over the snapshot, by code.

    A check that raises is `crashed`, and the others still run.
    """
    chosen = matching(selection.select, subject) if selection.select else None
    ignored, demoted = matching(selection.ignore, subject), matching(selection.demote, subject)
    why = {code: text for name, text in selection.why.items() for code in matching([name], subject)}
    runs = []
    for candidate in all_checks(subject):
        if candidate.code in ignored or (chosen is not None and candidate.code not in chosen):
            reason = why.get(candidate.code, "--ignore") if candidate.code in ignored else "not in --select"
            runs.append(CheckRun(candidate.code, candidate.slug, candidate.title, "ignored", reason))
        else:
            run = run_check(candidate, snapshot)
            runs.append(_demoted(run, why.get(candidate.code, "")) if candidate.code in demoted else run)
    return tuple(runs)


def run_check(definition: Check, snapshot: Snapshot) -> CheckRun:
    """Return the outcome of one check: found, else unknown, else not applicable, else passed."""
    started = time.perf_counter()
    outcome, reason, findings = _answer(definition, snapshot)
    # Whole seconds: what a check of milliseconds took is noise, and would make no two reports of a run equal.
    seconds = float(round(time.perf_counter() - started))
    return CheckRun(definition.code, definition.slug, definition.title, outcome, reason, seconds, findings)


def _answer(definition: Check, snapshot: Snapshot) -> tuple[Outcome, str, tuple[Finding, ...]]:
    if definition.subject == "nodes" and snapshot.of == "image" and not definition.image:
        return "not_applicable", definition.not_in_image, ()
    if definition.image == "only" and snapshot.of != "image":
        return "not_applicable", OF_IMAGES, ()
    if 0 < (size := job_size(snapshot)) < definition.nodes:
        return "not_applicable", f"needs {definition.nodes} nodes, this job has {size}", ()
    if definition.joined and snapshot.viewpoint == "one-node":
        return "unknown", snapshot.lost_run or "the nodes did not meet", ()
    try:
        answers = _answers(definition, snapshot)
    except Exception as error:  # a bug in one check must not take the others' answers away
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "crashed", f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})", ()
    findings = tuple(
        replace(answer, code=definition.code, slug=definition.slug)
        for answer in answers
        if isinstance(answer, Finding)
    )
    findings = tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
    not_known = [
        answer
        for answer in answers
        if isinstance(answer, NotKnown) and answer.section not in definition.needs
    ]
    unknown = [_with_hosts(answer) for answer in (*not_known, *_missing_sections(definition, snapshot))]
    if findings:
        return "found", "; ".join(unknown), findings
    if unknown:
        return "unknown", "; ".join(unknown), ()
    for answer in answers:
        if isinstance(answer, NotApplicable):
            return "not_applicable", answer.reason, ()
    return "passed", "", ()


def _answers(definition: Check, snapshot: Snapshot) -> list[Answer]:
    if not definition.alike:
        return list(definition.body(snapshot))
    answers = list(definition.body(one_of_each_kind(snapshot, definition.alike)))
    if all(isinstance(answer, NotKnown) for answer in answers) and answers == list(not_reported(snapshot)):
        return answers  # nothing of any node that reported
    is_by_node = definition.by_node and not any(isinstance(answer, NotApplicable) for answer in answers)
    if is_by_node or all(isinstance(answer, NotKnown) and answer.hosts for answer in answers):
        snapshot = without_silent_kinds(snapshot, definition.alike, _hosts_in(answers))
    return list(definition.body(snapshot))


def _hosts_in(answers: Iterable[Answer]) -> set[str]:
    hosts: set[str] = set()
    for answer in answers:
        if isinstance(answer, Finding):
            hosts.update(answer.hosts, *(piece.hosts for piece in answer.evidence))
        elif isinstance(answer, NotKnown):
            hosts.update(answer.hosts)
    return hosts


def _with_hosts(answer: NotKnown) -> str:
    return f"{','.join(answer.hosts)}: {answer.reason}" if answer.hosts else answer.reason


def _missing_sections(definition: Check, snapshot: Snapshot) -> list[NotKnown]:
    if definition.subject != "nodes":
        return []
    if not snapshot.nodes:
        return [NotKnown("no node reported")]
    return [answer for section in definition.needs for answer in unread(snapshot, section)]


def _demoted(run: CheckRun, why: str) -> CheckRun:
    """Its errors are warnings; where findings were demoted for a reason, the reason is reported."""
    if why and any(finding.severity == "error" for finding in run.findings):
        run = replace(run, reason="; ".join(text for text in (why, run.reason) if text))
    findings = tuple(
        replace(finding, severity="warning") if finding.severity == "error" else finding
        for finding in run.findings
    )
    return replace(run, findings=findings)
