"""The settings that were tried, as a table: each size of each arm with its interval, and what became of the arm."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.benchmarks.trials import SizeEffect, Trial
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.model.units import format_size
from ncclcheck.report.text.page import Line, Span, line
from ncclcheck.report.text.plain import plain

HEADER = ("setting", "op", "size", "times as fast", "95 %, all together", "effect")
_STYLE = {"advised": "bold green", "failed": "bold red", "wrong data": "bold red", "refused": "bold yellow"}
ALONE = "the collectives were measured alone: beside the computing of a job another setting may win"


def trial_lines(report: Report) -> Iterator[Line]:
    """Yield a row per arm and size, what became of each arm and over what it ran, and how the trials ended."""
    bench = report.bench
    if bench is None or bench.trials is None or bench.race is None:
        return
    race = bench.race
    yield line(
        Span("tried", "bold"),
        f" against as-is, {plural(race.rounds, 'round')} of fresh processes "
        f"({race.sets} sets, {race.seconds:.0f} s, seed {race.seed}): {plain(race.words)}",
    )
    rows = [HEADER, *(row for trial in bench.trials for row in trial_rows(trial))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield line("  ".join(cells).rstrip(), indent=2, wrap=False)
    for trial in bench.trials:
        yield from _of_arm(trial)
    yield line(f"{ALONE}; {valid_for(report)}", indent=2)


def valid_for(report: Report) -> str:
    """Return for what size of job the result holds."""
    bench = report.bench
    nodes, ranks = (0, 0) if bench is None else (bench.nodes, bench.world_size)
    return f"it holds for {plural(nodes, 'node')} with {plural(ranks, 'rank')}"


def trial_rows(trial: Trial) -> Iterator[tuple[str, ...]]:
    """Yield its cells, a row per size."""
    for effect in trial.per_size:
        ratio = "-" if effect.ratio is None else f"{effect.ratio:.3f}"
        yield (
            plain(trial.name),
            effect.op,
            format_size(effect.size_bytes),
            ratio,
            interval_words(effect),
            "no effect" if effect.effect == "none" else effect.effect,
        )


def interval_words(effect: SizeEffect) -> str:
    """Return the interval, or that there are too few rounds for one."""
    if effect.low is None or effect.high is None:
        return "too few rounds"
    return f"{effect.low:.3f} to {effect.high:.3f}"


def _of_arm(trial: Trial) -> Iterator[Line]:
    uses = f" (used: {'; '.join(plain(use) for use in trial.uses)})" if trial.uses else ""
    if trial.role != "arm":
        if trial.role == "as-is" and uses:
            yield line(f"{trial.name}{uses}", indent=2)
        return
    yield line(
        f"{plain(trial.name)}: ",
        Span(trial.outcome, _STYLE.get(trial.outcome, "bold")),
        f": {plain(trial.reason)}{uses}",
        indent=2,
    )
    again = [effect for effect in trial.confirmed if effect.ratio is not None]
    if again:
        speedups = ", ".join(
            f"{effect.op} {format_size(effect.size_bytes)} {effect.ratio:.3f}" for effect in again
        )
        yield line(f"measured again, times as fast: {speedups}", indent=4)
