"""What `matrix` found: the rates between the nodes, the leaves that they show, and slow nodes and paths."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.benchmarks.isolation import Direction, PairOutcome, Unheard


class Oversubscription(Struct, frozen=True, forbid_unknown_fields=True):
    """The mean rates of a pair within and across leaves while all nodes send, in 1e9 bit/s, and their ratio.

    `low` and `high`: its 95 % interval over the `repeats`. `slow_from`: the index in `leaves` of that one of two leaves
    from which all of this was measured to the other, since the way back is far faster: `back_gbit_s`; null: both ways.
    """

    within_gbit_s: float
    across_gbit_s: float
    ratio: float
    low: float
    high: float
    repeats: int
    slow_from: int | None = None
    back_gbit_s: float | None = None


class LeafUplink(Struct, frozen=True, forbid_unknown_fields=True):
    """What the nodes of a leaf reach across leaves while all nodes send, in 1e9 bit/s, and what is usual.

    `leaf` counts from 0, in the order of the leaves. `usual_gbit_s`: the same between the other leaves. `slow`: the
    direction, seen from the leaf, in which it was slower by a quarter or more in every repeat; null: in none.
    """

    leaf: int
    across_gbit_s: float
    usual_gbit_s: float
    slow: Direction | None


class MatrixNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A node that is slow with all others, or that was lost: `outcome` and `detail` say how."""

    host: str
    sends_slowly: bool
    receives_slowly: bool
    outcome: PairOutcome = "slow"
    detail: str = ""


class MatrixPath(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"from_host": "from", "to_host": "to"}
):
    """A path that is slow, as a part of `usual_gbit_s`; null: nothing got through.

    `slow`: in how many of its tests it was; 0: in all. Of few nodes the middle of all tests counts.
    """

    from_host: str
    to_host: str
    part: float | None
    usual_gbit_s: float
    tests: int
    slow: int = 0


class OpenPath(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"from_host": "from", "to_host": "to"}
):
    """A path that was slow in so many of its tests, not in all: it could not be decided."""

    from_host: str
    to_host: str
    slow: int
    tests: int


class MatrixCell(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"from_host": "from", "to_host": "to"}
):
    """The median rate of a path in all its tests, in 1e9 bit/s; null: none finished.

    `latency_us`: the shortest time of a byte there and back; null: not measured.
    """

    from_host: str
    to_host: str
    gbit_s: float | None
    tests: int
    latency_us: float | None = None


class RoundTripTimes(Struct, frozen=True, forbid_unknown_fields=True):
    """The medians of the shortest round trips: of all pairs, within leaves and across them; null: no such pair.

    `groups`: hosts that are near to each other and further from all others; none where all are equally near.
    """

    median_us: float
    within_us: float | None
    across_us: float | None
    groups: tuple[tuple[str, ...], ...] = ()


class RailRate(Struct, frozen=True, forbid_unknown_fields=True):
    """GPU `gpu` of all nodes with each other: the median rate, in 1e9 bit/s, and the hosts that are slow on it."""

    gpu: int
    rate_gbit_s: float
    slow: tuple[str, ...]


class SwappedRail(Struct, frozen=True, forbid_unknown_fields=True):
    """GPU `gpu` of the host is fast with GPU `rail` of the other nodes and slow with GPU `gpu`."""

    host: str
    gpu: int
    rail: int


class RailRates(Struct, frozen=True, forbid_unknown_fields=True):
    """The rails of nodes with several GPUs. `cross_gbit_s`: a GPU with one of another rail, all at once.

    Null: it was not measured; 0: no such test finished.
    """

    rails: tuple[RailRate, ...]
    cross_gbit_s: float | None
    swapped: tuple[SwappedRail, ...] = ()


class FabricMatrix(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of `matrix`.

    `reference_gbit_s`: what a pair within a leaf reaches. `leaves`: groups of hosts that are fast with each other, the
    largest first. `flat`: there is one, as far as these tests load the network; never of fewer than four nodes, or
    before the last round. `order`: the hosts leaf by leaf, to start a job on, without those that were lost. `apart`:
    nodes that belong to no leaf. `crossing_slow`: the share of tests between leaves that were slow. `is_finished`:
    false where the time was over before the last round. `unheard`: nodes that fell silent, for which they are not
    named.
    """

    reference_gbit_s: float
    spread: float
    leaves: tuple[tuple[str, ...], ...]
    flat: bool
    apart: tuple[str, ...]
    crossing_slow: float
    oversubscription: Oversubscription | None
    order: tuple[str, ...]
    nodes: tuple[MatrixNode, ...]
    paths: tuple[MatrixPath, ...]
    cells: tuple[MatrixCell, ...]
    rounds: int
    is_finished: bool
    open_paths: tuple[OpenPath, ...] = ()
    round_trips: RoundTripTimes | None = None
    rails: RailRates | None = None
    uplinks: tuple[LeafUplink, ...] = ()
    unheard: Unheard | None = None

    @property
    def named_leaves(self) -> dict[str, tuple[str, ...]]:
        """Return the hosts of each leaf by its name, which is ours: leaf01 is the largest."""
        return {leaf_name(number, len(self.leaves)): hosts for number, hosts in enumerate(self.leaves)}

    @property
    def slow_way(self) -> tuple[str, str] | None:
        """Return the names of the two leaves from and to which the network is slow, if it is in that direction only."""
        slow_from = None if self.oversubscription is None else self.oversubscription.slow_from
        if slow_from is None or slow_from >= len(self.leaves):
            return None
        return leaf_name(slow_from, len(self.leaves)), leaf_name(1 - slow_from, len(self.leaves))


def leaf_name(number: int, leaves: int) -> str:
    """Return the name of the leaf of that number, from 0, of so many: leaf01."""
    return f"leaf{number + 1:0{max(2, len(str(leaves)))}}"
