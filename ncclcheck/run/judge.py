"""From a Snapshot to a Report: checks, advice and verdict, all pure; and the document that replays it."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.block import advise
from ncclcheck.checks.registry import run_checks
from ncclcheck.checks.rules import in_force
from ncclcheck.exchange.messages import TOOL_VERSION
from ncclcheck.model.report import SCHEMA_VERSION, Advice, Report, Tool
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.build import build_report
from ncclcheck.run.options import RunOptions

_DAY = len("2026-12-31")  # the beginning of an ISO time


class RunClock(Struct, frozen=True):
    """When the run began: for people, and for measuring."""

    created: str
    started: float


def start_clock() -> RunClock:
    """Return now."""
    return RunClock(datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic())


def save(snapshot: Snapshot, options: RunOptions, clock: RunClock, *, interrupted: bool) -> Saved:
    """Return the run as a document."""
    return Saved(
        schema_version=SCHEMA_VERSION,
        kind="ncclcheck-snapshot",
        tool=Tool("ncclcheck", TOOL_VERSION),
        command=options.command,
        created=clock.created,
        elapsed_s=round(time.monotonic() - clock.started, 3),
        interrupted=interrupted,
        snapshot=with_policy(
            replace(snapshot, expected_gpus_per_node=options.gpus_per_node, bench_demands=options.demands),
            options,
            clock.created,
        ),
    )


def with_policy(snapshot: Snapshot, options: RunOptions, created: str) -> Snapshot:
    """Add the demands of the policy that was given, to be judged by the day of the run (in UTC)."""
    expected = snapshot.expected if options.expected is None else options.expected
    return replace(snapshot, expected=replace(expected, on=created[:_DAY]))


def judge(saved: Saved, options: RunOptions) -> Report:
    """Return the report of a saved run: the same document and options give the same report, to the letter."""
    selection = in_force(options.selection, saved.snapshot)
    runs = run_checks(saved.snapshot, selection)
    return build_report(
        saved.snapshot,
        runs,
        advise(saved.snapshot) if saved.snapshot.of == "nodes" else Advice(),
        command=saved.command,
        created=saved.created,
        elapsed_s=saved.elapsed_s,
        fail_on=options.fail_on,
        require=selection.require,
        interrupted=saved.interrupted,
    )
