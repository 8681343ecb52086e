"""Which leaf has a slower uplink than the others: its nodes reach less across leaves while all nodes send."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from statistics import median

from msgspec import Struct

from ncclcheck.measure.isolation.pair_tests import PairTest
from ncclcheck.measure.matrix.leaves import Leaves
from ncclcheck.model.benchmarks.matrix import LeafUplink

LEAST_LEAVES = 3  # of two, nobody can tell whose uplink it is
LEAST_REPEATS = 2
SLOW_PART = 0.75  # of what is usual: at most this much of it is slow


class _Flow(Struct, frozen=True):
    """What a node of leaf `source` sent to one of leaf `target`, in 1e9 bit/s."""

    source: int
    target: int
    gbit_s: float


class _Leaf(Struct, frozen=True):
    """What the nodes of a leaf sent and received across leaves in one repeat, and the usual flow without them."""

    sent_gbit_s: tuple[float, ...]
    received_gbit_s: tuple[float, ...]
    usual_gbit_s: float | None  # None: no flow was between two other leaves


def leaf_uplinks(
    leaves: Leaves, tests: Sequence[PairTest], kinds: Mapping[int, str], ignored: Set[int]
) -> tuple[LeafUplink, ...]:
    """Return the uplink of each leaf of three or more that could be compared in the rounds across leaves.

    `ignored`: nodes that are slow by themselves.
    """
    if len(leaves.groups) < LEAST_LEAVES:
        return ()
    repeats = [_by_leaf(flows) for flows in _across(leaves, tests, kinds, ignored)]
    history = [
        [repeat[number] for repeat in repeats if number in repeat] for number in range(len(leaves.groups))
    ]
    sent = [max((sum(leaf.sent_gbit_s) for leaf in loads), default=0.0) for loads in history]
    received = [max((sum(leaf.received_gbit_s) for leaf in loads), default=0.0) for loads in history]
    found = []
    for number, loads in enumerate(history):
        compared = [(leaf, leaf.usual_gbit_s) for leaf in loads if leaf.usual_gbit_s is not None]
        if len(compared) < LEAST_REPEATS:
            continue
        sends = _moves_less(number, sent) and all(
            median(leaf.sent_gbit_s) <= SLOW_PART * usual for leaf, usual in compared
        )
        receives = _moves_less(number, received) and all(
            median(leaf.received_gbit_s) <= SLOW_PART * usual for leaf, usual in compared
        )
        found.append(
            LeafUplink(
                number,
                median(median((*leaf.sent_gbit_s, *leaf.received_gbit_s)) for leaf, _ in compared),
                median(usual for _, usual in compared),
                "both" if sends and receives else "send" if sends else "receive" if receives else None,
            )
        )
    return tuple(found)


def _across(
    leaves: Leaves, tests: Sequence[PairTest], kinds: Mapping[int, str], ignored: Set[int]
) -> list[list[_Flow]]:
    """Return the flows of each round across leaves; a test has one in each direction."""
    number_of = leaves.number_of()
    rounds: defaultdict[int, list[_Flow]] = defaultdict(list)
    for test in tests:
        if kinds.get(test.round) != "across" or test.rates_gbit_s is None or ignored & {*test.pair}:
            continue
        first, second = number_of.get(test.first), number_of.get(test.second)
        if first is not None and second is not None and first != second:
            forth, back = test.rates_gbit_s
            rounds[test.round] += (_Flow(first, second, forth), _Flow(second, first, back))
    return list(rounds.values())


def _by_leaf(flows: Sequence[_Flow]) -> dict[int, _Leaf]:
    """Return the flows of each leaf of a repeat, and the usual one between the others.

    Each leaf sends and receives, since a test has a flow in each direction.
    """
    sent: defaultdict[int, list[float]] = defaultdict(list)
    received: defaultdict[int, list[float]] = defaultdict(list)
    for flow in flows:
        sent[flow.source].append(flow.gbit_s)
        received[flow.target].append(flow.gbit_s)
    ordered = sorted(flows, key=lambda flow: flow.gbit_s)  # a median of what is in order is quick
    found = {}
    for leaf in sent:
        usual = [flow.gbit_s for flow in ordered if leaf not in (flow.source, flow.target)]
        found[leaf] = _Leaf(tuple(sent[leaf]), tuple(received[leaf]), median(usual) if usual else None)
    return found


def _moves_less(number: int, most_gbit_s: Sequence[float]) -> bool:
    """Return whether the leaf moved less than others did: a large one behind a usual uplink is only slow by node."""
    rest = [*most_gbit_s[:number], *most_gbit_s[number + 1 :]]
    return most_gbit_s[number] <= SLOW_PART * median(rest)
