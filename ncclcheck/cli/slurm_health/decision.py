"""What `--slurm-health` does with a node, as a pure function of its last results and of what Slurm says.

A node is drained after two bad results of its last three, and resumed after three good ones in a row, if it was drained
by us. What an administrator, Slurm itself or another tool did is never undone or overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.exit_code import JUDGED, PASS

OWN_REASON = "ncclcheck node: "  # as no other command of ours, and no example, begins a reason
KEPT_RESULTS = 3
BAD_TO_DRAIN = 2
GOOD_TO_RESUME = 3
_AWAY = frozenset(
    {"DOWN", "FAIL", "FAILING", "ERROR", "FUTURE", "POWERED_DOWN", "POWERING_DOWN", "REBOOT_ISSUED"}
)

Health: TypeAlias = Literal["good", "bad", "unknown"]


class Result(Struct, frozen=True, forbid_unknown_fields=True):
    """One earlier run: when, in seconds since 1970, and whether the node was fit."""

    at_s: float
    is_good: bool


class SlurmNode(Struct, frozen=True):
    """A node as Slurm shows it: the base state and the flags, the reason, and when that was set."""

    name: str
    states: frozenset[str]
    reason: str = ""
    reason_since: str = ""

    @property
    def is_drained(self) -> bool:
        """Return whether no new job starts there because somebody said so."""
        return "DRAIN" in self.states

    @property
    def is_ours(self) -> bool:
        """Return whether it is drained, and by us."""
        return self.is_drained and self.reason.startswith(OWN_REASON)


class Action(Struct, frozen=True):
    """What to do, and why, for people."""

    kind: Literal["drain", "resume", "none"]
    why: str


def health_of(exit_code: int) -> Health:
    """Return what a run says about the node; wrong usage, a bug and an interrupt say nothing."""
    if exit_code not in JUDGED:
        return "unknown"
    return "good" if exit_code == PASS else "bad"


def decide(results: Sequence[Result], node: SlurmNode) -> Action:
    """Return what the results, of which the last is the present one, ask for with this node."""
    last = results[-KEPT_RESULTS:]
    bad = sum(not result.is_good for result in last)
    if not last or last[-1].is_good:
        return _decide_good(last, bad, node)
    if node.is_ours:
        return Action("none", "it is drained already")
    if node.is_drained or node.reason:
        return Action("none", f"it has a reason that is not ours, which stays: {node.reason or 'none given'}")
    if node.states & _AWAY:
        return Action("none", f"it is {'+'.join(sorted(node.states))}")
    if bad < BAD_TO_DRAIN:
        return Action("none", f"{bad} bad of the last {len(last)} results, and {BAD_TO_DRAIN} drain it")
    return Action("drain", f"{bad} bad of the last {len(last)} results")


def _decide_good(last: Sequence[Result], bad: int, node: SlurmNode) -> Action:
    if not node.is_drained:
        return Action("none", "it is fit")
    if not node.is_ours:
        return Action(
            "none", f"it is fit, and drained for a reason that is not ours: {node.reason or 'none given'}"
        )
    if node.states & _AWAY:
        return Action("none", f"it is {'+'.join(sorted(node.states))}")
    if bad or len(last) < GOOD_TO_RESUME:
        return Action("none", f"{len(last) - bad} good results, and {GOOD_TO_RESUME} in a row resume it")
    return Action("resume", f"{len(last)} good results in a row")


def most_drained(nodes: int, percent: int) -> int:
    """Return how many of so many nodes we may keep drained: that share of them, and one at least."""
    return max(1, nodes * percent // 100)


def may_drain(fleet: Sequence[SlurmNode], percent: int) -> bool:
    """Return whether one more node may be drained by us."""
    return sum(node.is_ours for node in fleet) < most_drained(len(fleet), percent)


def is_beyond(name: str, fleet: Sequence[SlurmNode], percent: int) -> bool:
    """Return whether the node has to be given back, since several were drained at the same time.

    The earliest stay drained; those of the same second in the order of their names, so that all nodes agree.
    """
    ours = sorted((node.reason_since, node.name) for node in fleet if node.is_ours)
    return name in [drained for _, drained in ours[most_drained(len(fleet), percent) :]]
