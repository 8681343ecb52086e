"""What a race has shown of each environment: its effect per size, whether it is advised, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from ncclcheck.measure.trials.choices import UNTOLD, is_unchanged, is_unknown
from ncclcheck.measure.trials.race import (
    CONFIRMING_ERROR,
    Rounds,
    Rules,
    confirming_looks,
    effect_of,
    is_confirmed,
    point_shifts,
)
from ncclcheck.measure.trials.signed_rank import Shift
from ncclcheck.measure.trials.standings import TWIN, Standings
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.trials import (
    CallChoice,
    Outcome,
    Point,
    RoundTimes,
    SizeEffect,
    Trial,
    TryRequest,
)
from ncclcheck.model.units import format_size

AS_IS = -2
_EACH = "95 % for each size by itself"  # to leave the race; the effects per size are of all together
_UNCHANGED = "NCCL's log has the same algorithm and protocol as without it: the gain is not its own"


class ArmRecord(Struct, frozen=True):
    """What was seen of an environment beside its figures: what it used, why it failed, and the times of its rounds."""

    uses: tuple[str, ...] = ()
    choices: tuple[CallChoice, ...] = ()
    failure: str = ""
    wrong: bool = False
    hosts: tuple[str, ...] = ()
    rounds: tuple[RoundTimes, ...] = ()


def trials_of(
    plan: BenchPlan,
    request: TryRequest,
    standings: Standings,
    results: Mapping[int, ArmRecord],
    confirmations: Mapping[int, Rounds],
) -> tuple[Trial, ...]:
    """Return as-is, its twin, and the arms in the order in which they were given.

    `confirmations`: the figures of each winner when it was measured again.
    """
    found = [
        _reference(results[AS_IS], "as-is", ()),
        _reference(results[TWIN], "twin", effects_of(plan, standings, TWIN)),
    ]
    for arm, settings in enumerate(request.arms):
        effects = effects_of(plan, standings, arm)
        confirmed: tuple[SizeEffect, ...] = ()
        if again := confirmations.get(arm, ()):
            shifts = point_shifts(again, standings.rules.points, CONFIRMING_ERROR)
            confirmed = _sizes(plan, shifts, again, standings.rules)
        outcome, reason = _outcome(standings, arm, results[arm], effects, confirmations)
        result = results[arm]
        choices, points = (results[AS_IS].choices, result.choices), better_points(effects)
        if is_unchanged(settings, *choices, points) and standings.standing[arm] == "candidate":
            outcome, reason = "unchanged", f"faster at {_points_text(effects, 'better')}, but {_UNCHANGED}"
        elif outcome == "advised" and is_unknown(settings, *choices, points):
            reason = f"{reason}; {UNTOLD}"
        found.append(
            Trial(
                arm=settings,
                per_size=effects,
                outcome=outcome,
                reason=reason,
                uses=result.uses,
                choices=result.choices,
                confirmed=confirmed,
                hosts=result.hosts,
                rounds=result.rounds,
            )
        )
    return tuple(found)


def better_points(effects: Sequence[SizeEffect]) -> list[Point]:
    """Return where it is faster."""
    return [(effect.op, effect.size_bytes) for effect in effects if effect.effect == "better"]


def _reference(result: ArmRecord, role: str, effects: tuple[SizeEffect, ...]) -> Trial:
    return Trial(
        {},
        effects,
        "as-is" if role == "as-is" else "twin",
        "reference",
        uses=result.uses,
        choices=result.choices,
        rounds=result.rounds,
    )


def effects_of(plan: BenchPlan, standings: Standings, arm: int) -> tuple[SizeEffect, ...]:
    """Return the effect of an arm at each point."""
    figures, rules = standings.figures[arm], standings.rules
    return _sizes(plan, point_shifts(figures, rules.points, rules.error), figures, rules)


def _sizes(
    plan: BenchPlan, shifts: Sequence[Shift | None], figures: Rounds, rules: Rules
) -> tuple[SizeEffect, ...]:
    points = [(op, size) for op in plan.ops for size in plan.sizes_bytes]
    found = []
    for number, ((op, size), shift) in enumerate(zip(points, shifts, strict=True)):
        if shift is None:
            middle = _median([row[number] for row in figures])
            found.append(SizeEffect(op, size, "undecided", middle))
            continue
        ratio, low, high = (round(math.exp(value), 4) for value in (shift.middle, shift.low, shift.high))
        found.append(SizeEffect(op, size, effect_of(shift, rules.gain), ratio, low, high))
    return tuple(found)


def _median(values: list[float]) -> float | None:
    return round(math.exp(median(values)), 4) if values else None


def _outcome(
    standings: Standings,
    arm: int,
    result: ArmRecord,
    effects: Sequence[SizeEffect],
    confirmations: Mapping[int, Rounds],
) -> tuple[Outcome, str]:
    if result.failure:
        return "wrong data" if result.wrong else "failed", result.failure
    how = standings.standing[arm]
    if standings.twin_differs:
        return "undecided", "as-is and as-is again differ"
    if how == "refused":
        return "refused", _trade(effects)
    if how == "candidate":
        return _of_candidate(standings, arm, effects, confirmations)
    if how == "beaten":
        return _of_beaten(standings, effects, confirmations)
    if how == "slower":
        return "slower", f"slower at {_points_text(effects, 'worse') or _lowest(effects)} ({_EACH})"
    if how == "no gain":
        return "no gain", f"it gains less than {standings.rules.gain:.0%} at every size ({_EACH})"
    return "undecided", f"{standings.rounds} rounds do not decide it"


def _of_candidate(
    standings: Standings, arm: int, effects: Sequence[SizeEffect], confirmations: Mapping[int, Rounds]
) -> tuple[Outcome, str]:
    faster, again = f"faster at {_points_text(effects, 'better')}", confirmations.get(arm, ())
    if _is_advised(standings, arm, confirmations):
        return "advised", f"{faster}, and again in {len(again)} rounds"
    if len(again) >= confirming_looks(len(standings.figures[arm]))[-1]:
        return "not confirmed", f"not faster again in {len(again)} rounds of fresh processes"
    if _has_winner(standings, confirmations):
        return "second best", f"{faster}, and another setting is faster still"
    return "undecided", f"{faster}, and the trials ended before it was confirmed"


def _of_beaten(
    standings: Standings, effects: Sequence[SizeEffect], confirmations: Mapping[int, Rounds]
) -> tuple[Outcome, str]:
    faster = _points_text(effects, "better")
    if not _has_winner(standings, confirmations):
        return "undecided", "slower at every size than another setting, which was not confirmed"
    if faster:
        return "second best", f"faster at {faster}, and another setting is faster still at every size"
    return (
        "undecided",
        "slower at every size than the setting that is advised; whether it gains is not decided",
    )


def _has_winner(standings: Standings, confirmations: Mapping[int, Rounds]) -> bool:
    return any(_is_advised(standings, arm, confirmations) for arm in standings.candidates)


def _is_advised(standings: Standings, arm: int, confirmations: Mapping[int, Rounds]) -> bool:
    """Return whether it was confirmed, at one of the looks at which that is decided."""
    again, better = confirmations.get(arm, ()), standings.better_at(arm)
    is_look = len(again) in confirming_looks(len(standings.figures[arm]))
    return bool(better) and is_look and is_confirmed(again, better)


def _trade(effects: Sequence[SizeEffect]) -> str:
    return f"faster at {_points_text(effects, 'better') or 'one size'}, but slower at {_lowest(effects)}"


def _points_text(effects: Sequence[SizeEffect], kind: str) -> str:
    return ", ".join(_words(effect) for effect in effects if effect.effect == kind)


def _lowest(effects: Sequence[SizeEffect]) -> str:
    known = [effect for effect in effects if effect.ratio is not None]
    return _words(min(known, key=lambda effect: effect.ratio or 0.0)) if known else "some size"


def _words(effect: SizeEffect) -> str:
    change = (effect.ratio or 1.0) - 1.0
    return f"{effect.op} {format_size(effect.size_bytes)} ({change:+.1%})"
