"""`--slurm-health`: from the report of a node to what is done with it in Slurm."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ncclcheck.cli.slurm_health.decision import (
    OWN_REASON,
    Result,
    SlurmNode,
    decide,
    health_of,
    is_beyond,
    may_drain,
    most_drained,
)
from ncclcheck.cli.slurm_health.history import record
from ncclcheck.cli.slurm_health.scontrol import drain_words, resume_words, shown_nodes, update
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report
from ncclcheck.timeouts import SLURM_HEALTH_S, SLURM_SETTLE_S

DEFAULT_FOLDER = "/run/ncclcheck"
DEFAULT_PERCENT = 10


class HealthRequest(Struct, frozen=True):
    """What the user wants: which node this is, where its results are kept, and how much of the fleet may be drained."""

    node: str
    folder: str = DEFAULT_FOLDER
    most_percent: int = DEFAULT_PERCENT
    dry_run: bool = False


def health_request(
    option_values: Mapping[str, Any], environ: Mapping[str, str], host: str
) -> HealthRequest | None:
    """Return what `option_values` asks for; None without --slurm-health. Raises UsageError for what contradicts it."""
    further = [name for name in ("dry_run", "max_drained", "state_dir") if option_values.get(name)]
    if not option_values.get("slurm_health"):
        if further:
            raise UsageError(
                f"--{further[0].replace('_', '-')} is for --slurm-health: add it, or leave this out"
            )
        return None
    if option_values.get("from_"):
        raise UsageError(
            "--slurm-health acts on this node now, but --from replays a run that is over: leave one out"
        )
    return HealthRequest(
        environ.get("SLURMD_NODENAME") or host.partition(".")[0],
        option_values.get("state_dir") or DEFAULT_FOLDER,
        option_values.get("max_drained") or DEFAULT_PERCENT,
        bool(option_values.get("dry_run")),
    )


class _Acting(Struct, frozen=True):
    """What every step of it needs: what was asked for, until when, and how to tell."""

    request: HealthRequest
    deadline: Deadline
    say: Callable[[str], None]


def act(report: Report, request: HealthRequest, say: Callable[[str], None]) -> bool:
    """Drain or resume the node, if that is due; return False where Slurm or the history did not let us tell."""
    acting = _Acting(request, Deadline(SLURM_HEALTH_S), say)
    health = health_of(report.verdict.exit_code)
    if health == "unknown":
        say(f"slurm: {request.node} is left unchanged: this run is inconclusive")
        return True
    try:
        results = record(request.folder, request.node, Result(time.time(), health == "good"))
    except UsageError as error:
        say(f"slurm: {request.node} is left unchanged: {error}")
        return False
    shown = shown_nodes(acting.deadline, request.node)
    if isinstance(shown, Missing):
        return _failed(acting, shown)
    action = decide(results, shown[0])
    if action.kind == "none":
        say(f"slurm: {request.node} is left unchanged: {action.why}")
        return True
    if action.kind == "resume":
        return _change(acting, resume_words(request.node), action.why)
    return _drain(acting, report, action.why)


def _drain(acting: _Acting, report: Report, why: str) -> bool:
    """Drain the node, unless too many are; give it back where too many were drained at the same moment."""
    request, deadline, say = acting.request, acting.deadline, acting.say
    fleet = shown_nodes(deadline)
    if isinstance(fleet, Missing):
        return _failed(acting, fleet)
    if not may_drain(fleet, request.most_percent):
        say(f"slurm: {request.node} is left unchanged: {_cap(fleet, request)}")
        return True
    reason = report.verdict.reasons[0] if report.verdict.reasons else "not fit"
    words = drain_words(request.node, f"{OWN_REASON}{reason}")
    if not _change(acting, words, why) or request.dry_run:
        return request.dry_run
    time.sleep(SLURM_SETTLE_S)  # Slurm starts its health check on all nodes at once
    fleet = shown_nodes(deadline)
    if isinstance(fleet, Missing):
        say(f"slurm: {request.node} was drained; whether too many nodes are is not known: {fleet}")
        return False
    if is_beyond(request.node, fleet, request.most_percent):
        return _change(acting, resume_words(request.node), _cap(fleet, request))
    return True


def _cap(fleet: Sequence[SlurmNode], request: HealthRequest) -> str:
    most = most_drained(len(fleet), request.most_percent)
    ours = sum(node.is_ours for node in fleet)
    return (
        f"{ours} of {len(fleet)} nodes are drained by ncclcheck, and {most} may be "
        f"(--max-drained {request.most_percent}%): a larger share is rarely the nodes' own fault"
    )


def _change(acting: _Acting, words: Sequence[str], why: str) -> bool:
    if acting.request.dry_run:
        acting.say(f"slurm: would run: {shlex.join(words)} ({why})")
        return True
    failed = update(words, acting.deadline)
    if failed is not None:
        return _failed(acting, failed)
    acting.say(f"slurm: ran: {shlex.join(words)} ({why})")
    return True


def _failed(acting: _Acting, why: Missing) -> bool:
    acting.say(f"slurm: {acting.request.node} is left unchanged: {why.detail or why.missing}")
    return False
