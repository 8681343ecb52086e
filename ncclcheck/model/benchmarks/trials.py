"""Settings that are tried against the environment as it is (`bench --try`): the request, and the results."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.benchmarks.op import Op

GAIN = 0.03  # a smaller gain is not worth a change of the environment
LEAST_GAIN, MOST_GAIN = 0.01, 0.5  # what may be asked for
LOSS = 0.02  # a setting that loses more than this at another size is refused
MOST_ARMS = 16

Point: TypeAlias = tuple[Op, int]  # of a plan: a collective and its size in bytes
Effect: TypeAlias = Literal["better", "worse", "none", "undecided"]
Role: TypeAlias = Literal["as-is", "twin", "arm"]
Outcome: TypeAlias = Literal[
    "reference",  # as-is itself, and its twin
    "advised",
    "refused",  # faster at one size, and slower at another
    "not confirmed",  # faster at first, and not when it was measured again
    "second best",  # faster, and another arm is faster still
    "slower",
    "no gain",
    "unchanged",  # faster, but NCCL ran the same algorithm and protocol as without it
    "undecided",
    "failed",  # a rank hung, died or could not start
    "wrong data",
]
Ended: TypeAlias = Literal[
    "decided", "nothing to gain", "undecided", "budget", "twin differs", "as-is failed", "interrupted"
]


class TryRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of each arm, the least gain that counts, and the seed of the order within the rounds."""

    arms: tuple[dict[str, str], ...]
    gain: float = GAIN
    seed: int = 0


class SizeEffect(Struct, frozen=True, forbid_unknown_fields=True):
    """An arm at one size. `ratio`: the time as-is over its own, so 1.1 is 10 % faster; null: not measured often enough.

    `low` and `high` hold it with 95 % for all arms and sizes of the run together.
    """

    op: Op
    size_bytes: int
    effect: Effect
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


class CallChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """What NCCL's log says of a call: with which algorithm, protocol and number of channels it ran. 0: not said."""

    op: Op
    size_bytes: int
    algorithm: str
    protocol: str
    channels: int


class RoundTimes(Struct, frozen=True, forbid_unknown_fields=True):
    """The typical iteration of each point of the plan in one round, in microseconds."""

    round: int
    times_us: tuple[float, ...]


class Trial(Struct, frozen=True, forbid_unknown_fields=True):
    """One environment: its settings on top of as-is, its effect per size, and what became of it.

    `reason`: a sentence. `uses`: what NCCL's log, or Gloo's binding, says that it ran over. `choices`: of each call.
    `confirmed`: the effect in the confirmation run, where there was one. `hosts`: those of ranks that failed.
    """

    arm: dict[str, str]
    per_size: tuple[SizeEffect, ...] = ()
    role: Role = "arm"
    outcome: Outcome = "undecided"
    reason: str = ""
    uses: tuple[str, ...] = ()
    choices: tuple[CallChoice, ...] = ()
    confirmed: tuple[SizeEffect, ...] = ()
    hosts: tuple[str, ...] = ()
    rounds: tuple[RoundTimes, ...] = ()

    @property
    def name(self) -> str:
        """Return its settings as they are typed; of as-is and its twin their names."""
        if self.role != "arm":
            return "as-is" if self.role == "as-is" else "as-is again (twin)"
        return ",".join(f"{name}={value}" for name, value in self.arm.items())


class Race(Struct, frozen=True, forbid_unknown_fields=True):
    """How the trials went: seed, rounds, sets of processes, and why they ended. `words`: a sentence for people."""

    seed: int
    gain: float
    rounds: int
    confirming_rounds: int
    sets: int
    seconds: float
    ended: Ended
    words: str
