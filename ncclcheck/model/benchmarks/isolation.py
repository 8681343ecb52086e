"""What `isolate` found: rounds of disjoint pairs, and which nodes, links or groups they point to."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.model.errors import UsageError
from ncclcheck.model.units import parse_size

PairOutcome: TypeAlias = Literal["ok", "slow", "hang", "died", "unreachable"]
MatrixScope: TypeAlias = Literal["auto", "full", "leaves"]
NodeVerdict: TypeAlias = Literal["slow", "hang", "died", "unreachable", "intermittent"]
Direction: TypeAlias = Literal["send", "receive", "both"]
LEAST_EFFECT, MOST_EFFECT = 0.03, 0.9  # what may be asked for
_LEAST_PAIR_BYTES, _MOST_PAIR_BYTES = 1 << 16, 1 << 32


NO_ANSWER = "node 0 does not hear it any more"  # the detail of a node that was lost without a word


class IsolateRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What the user wants: the least loss that counts (a part), bytes of a transfer at most, and how many rounds.

    The first `screen` rounds test all nodes. `rings`: where all pairs are sound, rings of doubling size follow.
    `matrix`: not who is bad is asked, but how well all nodes talk: all pairs, or the leaves only.
    """

    effect: float = 0.1
    most_bytes: int = 64 << 20
    screen: int = 1
    most_rounds: int = 9
    seed: int = 0
    rings: bool = False
    matrix: MatrixScope | None = None


def parse_pair_size(text: str) -> int:
    """Return the bytes of a transfer, for `most_bytes`. Raises UsageError if `text` is no size from 64K to 4G."""
    try:
        size_bytes = parse_size(text)
    except UsageError:
        size_bytes = 0
    if not _LEAST_PAIR_BYTES <= size_bytes <= _MOST_PAIR_BYTES:
        raise UsageError("expected a size from 64K to 4G, for example 64M")
    return size_bytes


class PairRate(Struct, frozen=True, forbid_unknown_fields=True):
    """One test of a pair: the rates in both directions, in 1e9 bit/s; None where it was not measured."""

    a: str
    b: str
    a_to_b_gbit_s: float | None
    b_to_a_gbit_s: float | None
    outcome: PairOutcome


class IsolationRound(Struct, frozen=True, forbid_unknown_fields=True):
    """The pairs that were tested at the same time. `number` counts from 1."""

    number: int
    pairs: tuple[PairRate, ...]


class RingRate(Struct, frozen=True, forbid_unknown_fields=True):
    """So many nodes in a ring, all at once: what the slowest of them received, in 1e9 bit/s; null: not finished."""

    number: int
    hosts: tuple[str, ...]
    rate_gbit_s: float | None
    outcome: PairOutcome


class BadNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A node that the tests name, and the chance that it is good.

    `sends` and `receives`: the medians over its tests with sound partners, as a part of the reference; None where it
    finished none. `detail`: what its own process said, where it failed. `rails`: the GPUs (by number on the node) whose
    rail is slow, where others of the node are not.
    """

    host: str
    verdict: NodeVerdict
    direction: Direction | None
    tests: int
    false_name_chance: float
    sends: float | None = None
    receives: float | None = None
    detail: str = ""
    rails: tuple[int, ...] = ()


class BadLink(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_host": "from", "to_host": "to"}):
    """A path between two sound nodes, in one direction. `detail`: what is known of it beside the tests."""

    from_host: str
    to_host: str
    verdict: Literal["slow", "blocked"]
    detail: str = ""


class BadGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that are sound among each other and slow toward all others: alone, or only if several talk at once."""

    hosts: tuple[str, ...]
    verdict: Literal["slow_uplink", "slow_together"]


class Coverage(Struct, frozen=True, forbid_unknown_fields=True):
    """How many different pairs were tested, of how many."""

    pairs_tested: int
    pairs: int


class Unheard(Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes that node 0 no longer heard, in a way that does not tell whether it was they: for that they are not named.

    `why`: node 0's own process did not run meanwhile, for `stood_still_s` (a paused virtual machine, swapping); most of
    the other nodes fell silent in the same round; there are only two nodes; or other nodes reach them.
    """

    hosts: tuple[str, ...]
    why: Literal["stood_still", "most", "two_nodes", "path"]
    stood_still_s: float = 0.0

    @property
    def words(self) -> str:
        """Return why they are not named."""
        match self.why:
            case "stood_still":
                return (
                    f"node 0 itself stood still for {self.stood_still_s:.0f} s (a paused virtual machine, swapping or "
                    "SIGSTOP), so their silence says nothing of them"
                )
            case "most":
                return (
                    "most nodes fell silent at the same moment, which points to node 0 or its network, not to each of "
                    "them"
                )
            case "path":
                return "other nodes reach it, so the path between it and node 0 is the cause, not the node"
        return "which of two nodes is the cause, or the path between them, takes a third one to tell"


class PairIsolation(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of `isolate`.

    `false_name_chance`: the expected number of sound nodes among those named. `reference_gbit_s`: what a sound pair
    reaches; null: no pair finished. `disturbed`: the share of tests between sound nodes that looked bad. `undecided`:
    nodes of which the tests do not tell. `only_from_nodes`: all pairs are sound, and rings of so many nodes are slow;
    `rings`: those that were measured. `unheard`: undecided nodes that fell silent, for which they are not named.
    `paused`: nodes whose ncclcheck stood still in a round and went on, for how many seconds: that round says nothing.
    """

    rounds: tuple[IsolationRound, ...]
    nodes: tuple[BadNode, ...]
    links: tuple[BadLink, ...]
    groups: tuple[BadGroup, ...]
    only_from_nodes: int | None
    coverage: Coverage
    false_name_chance: float
    undecided: tuple[str, ...]
    reference_gbit_s: float | None = None
    disturbed: float = 0.0
    seed: int = 0
    rings: tuple[RingRate, ...] = ()
    unheard: Unheard | None = None
    paused: dict[str, float] = {}
