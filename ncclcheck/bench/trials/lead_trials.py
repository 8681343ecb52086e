"""Try settings against the environment as it is, as node 0 leads it: rounds of sets of fresh processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.bench.trials.trial_set import MOST_SETS, Seen, TrialSet, seen, with_settings
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.measure.trials.choices import is_unchanged
from ncclcheck.measure.trials.outcome import ArmRecord, better_points, effects_of, trials_of
from ncclcheck.measure.trials.race import Rules, confirming_looks, is_confirmed, log_ratios
from ncclcheck.measure.trials.standings import TWIN, Standings
from ncclcheck.model.bench import BenchPlan, BenchResult
from ncclcheck.model.bench_setup import BenchNetwork, BenchRequest
from ncclcheck.model.benchmarks.trials import Ended, Race, RoundTimes, TryRequest
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.prose import plural
from ncclcheck.nccl.variables.trying import unread
from ncclcheck.timeouts import TRY_POINT_S

AS_IS = -2  # the number of as-is; its twin is -1, arms count from 0
_SPARE = 1.5  # times the longest set that did not fail, that have to be left for one more
_NOT_AGAIN = "as-is was not measured again after it"


class SetRun(Struct, frozen=True):
    """How a set is measured, and where progress goes. `keep` stores partial results of an interrupted run."""

    measure: Callable[[TrialSet], Fact[BenchResult]]
    say: Callable[[str], None]
    keep: Callable[[BenchResult], None]


class TrialLead(Struct, frozen=True):
    """The settings to try, the network, the deadline, and the function that measures."""

    bench_request: BenchRequest
    plan: BenchPlan
    network: BenchNetwork
    deadline: Deadline
    run: SetRun

    @property
    def request(self) -> TryRequest:
        """Return what is to be tried; there is something, or nobody leads trials."""
        assert self.bench_request.tries is not None  # noqa: S101
        return self.bench_request.tries


class _TrialsOverError(Exception):
    """No further set is measured: why."""

    def __init__(self, ended: Ended, words: str) -> None:
        super().__init__(words)
        self.ended, self.words = ended, words


def lead_trials(lead: TrialLead) -> Fact[BenchResult]:
    """Return the benchmark as-is with the trials; Missing where it could not be measured as it is."""
    for arm in lead.request.arms:
        if why := unread(arm, lead.plan.backend):
            return Missing("unsupported", why)
    trials = _Trials(lead)
    try:
        over = trials.race()
    except KeyboardInterrupt:
        if not isinstance(trials.as_is, Missing):
            lead.run.keep(trials.result(_TrialsOverError("interrupted", "interrupted")))
        raise
    return trials.as_is if isinstance(trials.as_is, Missing) else trials.result(over)


class _Trials:
    """The race as it goes. State: what each set has shown."""

    def __init__(self, lead: TrialLead) -> None:
        self._lead, self._random = lead, Random(lead.request.seed)  # noqa: S311 (an order, no secret)
        points = len(lead.plan.ops) * len(lead.plan.sizes_bytes)
        self._plan = replace(lead.plan, budget_s=TRY_POINT_S * points)
        self._settings = {AS_IS: {}, TWIN: {}, **dict(enumerate(lead.request.arms))}
        rules = Rules(len(lead.request.arms) + 1, points, lead.request.gain)
        self._standings = Standings(rules, len(lead.request.arms))
        self._until = lead.deadline.within(lead.bench_request.budget_s)
        self._began, self._sets, self._longest_s = time.monotonic(), 0, 0.0
        self._told: dict[int, ArmRecord] = {arm: ArmRecord() for arm in self._settings}
        self._confirmations: dict[int, tuple[tuple[float, ...], ...]] = {}
        self.as_is: Fact[BenchResult] = Missing("timeout", "no time was left to measure anything")

    def race(self) -> _TrialsOverError:
        """Run all rounds; return why they ended."""
        try:
            while True:
                while not self._standings.is_over:
                    self._round()
                winner = self._standings.best
                if winner is None or self._standings.twin_differs:
                    return self._end()
                if not self._is_unchanged(winner) and self._is_confirmed(winner):
                    return _TrialsOverError("decided", f"decided after {_rounds(self._standings)}")
                self._standings.leave(winner)
        except _TrialsOverError as over:
            return over

    def result(self, over: _TrialsOverError) -> BenchResult:
        """Return the benchmark as-is with what the trials have shown so far."""
        assert not isinstance(self.as_is, Missing)  # noqa: S101
        request, standings = self._lead.request, self._standings
        trials = trials_of(self._lead.plan, request, standings, self._told, self._confirmations)
        race = Race(
            seed=request.seed,
            gain=request.gain,
            rounds=standings.rounds,
            confirming_rounds=sum(map(len, self._confirmations.values())),
            sets=self._sets,
            seconds=round(time.monotonic() - self._began, 1),
            ended=over.ended,
            words=over.words,
        )
        return replace(self.as_is, trials=trials, race=race)

    def _round(self) -> None:
        """Measure as-is, its twin and every arm that is left, in random order."""
        order = [AS_IS, *self._standings.measured]
        if self._standings.rounds:  # as-is is the first of all: where it fails, no other is to blame
            self._random.shuffle(order)
        shown: dict[int, tuple[float, ...]] = {}
        for arm in order:
            found = self._measure(arm)
            if found.failure:
                self._blame(arm, found)
            else:
                shown[arm] = found.times_us
        self._standings.add(
            {arm: log_ratios(shown[AS_IS], times_us) for arm, times_us in shown.items() if arm != AS_IS}
        )
        for arm, times_us in shown.items():
            result = self._told[arm]
            self._told[arm] = replace(
                result, rounds=(*result.rounds, RoundTimes(self._standings.rounds, times_us))
            )
        self._say_round(shown)

    def _measure(self, arm: int) -> Seen:
        """Measure one set; raise _TrialsOverError where the budget does not suffice for it."""
        if self._until.left() <= _SPARE * self._longest_s:
            raise _TrialsOverError(
                "budget", "the budget was spent before it was decided: give a longer --budget"
            )
        if self._sets >= MOST_SETS:  # a node takes part in no more
            raise _TrialsOverError("undecided", f"{MOST_SETS} sets of processes did not decide it")
        began, network = time.monotonic(), with_settings(self._lead.network, self._settings[arm])
        self._sets += 1
        result = self._lead.run.measure(TrialSet(network, self._plan, f"try-{self._sets}"))
        found = seen(network, result)
        if not found.failure:  # a setting that hung is not measured again
            self._longest_s = max(self._longest_s, time.monotonic() - began)
        if arm == AS_IS and isinstance(self.as_is, Missing):
            self.as_is = result
        if found.late:
            raise _TrialsOverError("budget", f"the time was over: {found.failure}")
        known = self._told[arm]
        self._told[arm] = replace(
            known, uses=found.uses or known.uses, choices=found.choices or known.choices
        )
        return found

    def _blame(self, arm: int, found: Seen) -> None:
        """Take an arm that failed out of the race; raise where as-is fails, too.

        The failure is noted first: what comes between must not make it forgotten.
        """
        self._lead.run.say(f"{self._name(arm)}: {found.failure}")
        if arm in (TWIN, AS_IS):
            raise _fails_by_itself(found)
        before = self._told[arm]
        reason = f"{found.failure} ({_NOT_AGAIN})"
        self._told[arm] = replace(before, failure=reason, wrong=found.wrong, hosts=found.hosts)
        self._standings.leave(arm)
        again = self._measure(AS_IS)
        if again.failure and found.has_begun and not again.has_begun:
            raise _TrialsOverError("undecided", f"nothing more can be measured: {again.failure}")
        if again.failure:
            self._told[arm] = before
            raise _fails_by_itself(found)
        self._told[arm] = replace(self._told[arm], failure=found.failure)

    def _is_unchanged(self, winner: int) -> bool:
        """Return whether NCCL's log has the same algorithm and protocol with it as without it."""
        chosen, as_is = self._told[winner].choices, self._told[AS_IS].choices
        points = better_points(effects_of(self._lead.plan, self._standings, winner))
        return is_unchanged(self._settings[winner], as_is, chosen, points)

    def _is_confirmed(self, winner: int) -> bool:
        """Measure the winner against as-is once more; return whether it is faster again."""
        looks = confirming_looks(len(self._standings.figures[winner]))
        better = self._standings.better_at(winner)
        self._confirmations[winner] = ()
        self._lead.run.say(f"confirming {self._name(winner)} in {looks[0]} to {looks[1]} more rounds")
        for number in range(looks[1]):
            if number == looks[0] and is_confirmed(self._confirmations[winner], better):
                return True
            shown = {arm: self._measure(arm) for arm in ((winner, AS_IS) if number % 2 else (AS_IS, winner))}
            failed = next((arm for arm in (AS_IS, winner) if shown[arm].failure), None)
            if failed is not None:
                self._blame(failed, shown[failed])
                return False
            row = log_ratios(shown[AS_IS].times_us, shown[winner].times_us)
            self._confirmations[winner] += (row,)
        return is_confirmed(self._confirmations[winner], better)

    def _end(self) -> _TrialsOverError:
        """Return why a race without a winner ended."""
        standings = self._standings
        if standings.twin_differs:
            return _TrialsOverError(
                "twin differs",
                "as-is and as-is again differ: this machine cannot resolve the settings (what else runs on it?)",
            )
        if "racing" in {how for arm, how in standings.standing.items() if arm not in standings.out}:
            return _TrialsOverError(
                "undecided", f"{standings.rounds} rounds did not decide it: the times scatter too much"
            )
        if set(standings.standing.values()) & {"refused"} or standings.out:
            return _TrialsOverError("decided", f"decided after {_rounds(standings)}")
        return _TrialsOverError("nothing to gain", f"nothing to gain, after {_rounds(standings)}")

    def _say_round(self, shown: dict[int, tuple[float, ...]]) -> None:
        before = shown[AS_IS]
        parts = [
            f"{self._name(arm)} {math.exp(sum(log_ratios(before, times_us)) / len(before)):.3f}"
            for arm, times_us in sorted(shown.items())
            if arm != AS_IS
        ]
        self._lead.run.say(f"round {self._standings.rounds}, times as fast as as-is: {', '.join(parts)}")

    def _name(self, arm: int) -> str:
        named = ",".join(f"{name}={value}" for name, value in self._settings[arm].items())
        return named or ("twin" if arm == TWIN else "as-is")


def _fails_by_itself(found: Seen) -> _TrialsOverError:
    return _TrialsOverError("as-is failed", f"the environment as it is fails by itself: {found.failure}")


def _rounds(standings: Standings) -> str:
    return plural(standings.rounds, "round")
