"""What a race has shown of each environment: its effect per size, whether it is advised, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.measure.trials.race import (
    CONFIRMING_ERROR,
    Rounds,
    Rules,
    effect_of,
    is_confirmed,
    point_shifts,
)
from ncclcheck.measure.trials.signed_rank import Shift
from ncclcheck.measure.trials.standings import TWIN, Standings
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.benchmarks.trials import CallChoice, Outcome, RoundTimes, SizeEffect, Trial, TryRequest
from ncclcheck.model.units import format_size

AS_IS = -2


class Told(Struct, frozen=True):
    """What was seen of an environment beside its figures: what it used, why it failed, and the times of its rounds."""

    uses: tuple[str, ...] = ()
    choices: tuple[CallChoice, ...] = ()
    failure: str = ""
    wrong: bool = False
    hosts: tuple[str, ...] = ()
    rounds: tuple[RoundTimes, ...] = ()


class Confirmation(Struct, frozen=True):
    """The winner, measured again: its number, and its figures."""

    arm: int
    figures: tuple[tuple[float, ...], ...] = ()


def trials_of(
    plan: BenchPlan,
    request: TryRequest,
    standings: Standings,
    told: Mapping[int, Told],
    confirmation: Confirmation | None,
) -> tuple[Trial, ...]:
    """Return as-is, its twin, and the arms in the order in which they were given."""
    found = [
        _reference(told[AS_IS], "as-is", ()),
        _reference(told[TWIN], "twin", _effects(plan, standings, TWIN)),
    ]
    for arm, settings in enumerate(request.arms):
        effects = _effects(plan, standings, arm)
        confirmed: tuple[SizeEffect, ...] = ()
        if confirmation is not None and confirmation.arm == arm and confirmation.figures:
            shifts = point_shifts(confirmation.figures, standings.rules.points, CONFIRMING_ERROR)
            confirmed = _sizes(plan, shifts, confirmation.figures, standings.rules)
        outcome, reason = _outcome(standings, arm, told[arm], effects, confirmation)
        own = told[arm]
        found.append(
            Trial(
                arm=settings,
                per_size=effects,
                outcome=outcome,
                reason=reason,
                uses=own.uses,
                choices=own.choices,
                confirmed=confirmed,
                hosts=own.hosts,
                rounds=own.rounds,
            )
        )
    return tuple(found)


def _reference(told: Told, role: str, effects: tuple[SizeEffect, ...]) -> Trial:
    return Trial(
        {},
        effects,
        "as-is" if role == "as-is" else "twin",
        "reference",
        uses=told.uses,
        choices=told.choices,
        rounds=told.rounds,
    )


def _effects(plan: BenchPlan, standings: Standings, arm: int) -> tuple[SizeEffect, ...]:
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
    return round(math.exp(sorted(values)[len(values) // 2]), 4) if values else None


def _outcome(
    standings: Standings,
    arm: int,
    told: Told,
    effects: Sequence[SizeEffect],
    confirmation: Confirmation | None,
) -> tuple[Outcome, str]:
    if told.failure:
        return "wrong data" if told.wrong else "failed", told.failure
    how = standings.standing[arm]
    if standings.twin_differs:
        return "undecided", "as-is and as-is again differ"
    if how == "refused":
        return "refused", _trade(effects)
    if how == "candidate":
        return _of_candidate(standings, arm, effects, confirmation)
    if how == "slower":
        return "slower", f"slower at {_at(effects, 'worse') or _lowest(effects)}"
    if how == "no gain":
        return "no gain", f"it gains less than {standings.rules.gain:.0%} at every size"
    return "undecided", f"{standings.rounds} rounds do not decide it"


def _of_candidate(
    standings: Standings, arm: int, effects: Sequence[SizeEffect], confirmation: Confirmation | None
) -> tuple[Outcome, str]:
    if confirmation is None or confirmation.arm != arm:
        best = standings.best
        if best is not None and best != arm:
            return "second best", f"faster at {_at(effects, 'better')}, and another setting is faster still"
        return "undecided", "faster at first, and no longer so after further rounds"
    better = standings.better_at(arm)
    if not confirmation.figures or not better:
        return "undecided", "it was not measured again"
    if is_confirmed(confirmation.figures, better):
        return (
            "advised",
            f"faster at {_at(effects, 'better')}, and again in {len(confirmation.figures)} rounds",
        )
    return "not confirmed", f"not faster again in {len(confirmation.figures)} rounds of fresh processes"


def _trade(effects: Sequence[SizeEffect]) -> str:
    return f"faster at {_at(effects, 'better') or 'one size'}, but slower at {_lowest(effects)}"


def _at(effects: Sequence[SizeEffect], wanted: str) -> str:
    return ", ".join(_words(effect) for effect in effects if effect.effect == wanted)


def _lowest(effects: Sequence[SizeEffect]) -> str:
    known = [effect for effect in effects if effect.ratio is not None]
    return _words(min(known, key=lambda effect: effect.ratio or 0.0)) if known else "some size"


def _words(effect: SizeEffect) -> str:
    change = (effect.ratio or 1.0) - 1.0
    return f"{effect.op} {format_size(effect.size_bytes)} ({change:+.1%})"
