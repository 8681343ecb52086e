"""The chart of the rounds of `isolate`: the pairs, and the share of the usual rate that each direction reached."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.model.benchmarks.isolation import PairIsolation, PairRate
from ncclcheck.report.text.plain import plain

MOST_ROWS, MOST_ROUNDS = 96, 12
NAME_WIDTH, CELL_WIDTH, ROW_HEIGHT, HEAD_HEIGHT, BAR_WIDTH = 170, 150, 30, 26, 110
_NAME_LENGTH = 20


class Cell(Struct, frozen=True):
    """A test of a node: where it is drawn, its partner, its outcome, and the widths of the bars of both directions."""

    x: int
    y: int
    partner: str
    outcome: str
    sends: int
    receives: int
    title: str


class Row(Struct, frozen=True):
    """A node: where it is drawn, whether it is named, and its tests."""

    y: int
    host: str
    is_named: bool
    cells: tuple[Cell, ...]


class RoundsChart(Struct, frozen=True):
    """The chart: its size, the numbers of the rounds with their places, a row per node, and how many are left out."""

    width: int
    height: int
    rounds: tuple[tuple[int, int], ...]
    rows: tuple[Row, ...]
    left_out: int


def rounds_chart(isolation: PairIsolation | None) -> RoundsChart | None:
    """Return the chart; None without a test. Of many nodes, those that are named or had a bad test come first."""
    if isolation is None or not isolation.rounds:
        return None
    named = {node.host for node in isolation.nodes} | {link.from_host for link in isolation.links}
    named |= {link.to_host for link in isolation.links} | {
        host for group in isolation.groups for host in group.hosts
    }
    tests: dict[str, list[tuple[int, PairRate]]] = {}
    shown = isolation.rounds[:MOST_ROUNDS]
    for column, planned in enumerate(shown):
        for pair in planned.pairs:
            for host in (pair.a, pair.b):
                tests.setdefault(host, []).append((column, pair))
    bad = {host for host, host_tests in tests.items() if any(pair.outcome != "ok" for _, pair in host_tests)}
    hosts = sorted(tests, key=lambda host: (host not in named, host not in bad, host))
    hosts = hosts[:MOST_ROWS] if len(hosts) > MOST_ROWS else sorted(hosts)
    usual = isolation.reference_gbit_s or 0.0
    rows = tuple(
        Row(y, plain(host)[:_NAME_LENGTH], host in named, tuple(_cells(host, tests[host], y, usual)))
        for y, host in zip(
            range(HEAD_HEIGHT, HEAD_HEIGHT + ROW_HEIGHT * len(hosts), ROW_HEIGHT), hosts, strict=True
        )
    )
    return RoundsChart(
        NAME_WIDTH + CELL_WIDTH * len(shown),
        HEAD_HEIGHT + ROW_HEIGHT * len(hosts),
        tuple((planned.number, NAME_WIDTH + CELL_WIDTH * column) for column, planned in enumerate(shown)),
        rows,
        len(tests) - len(hosts),
    )


def _cells(host: str, host_tests: list[tuple[int, PairRate]], y: int, usual: float) -> Iterator[Cell]:
    for column, pair in host_tests:
        is_first = pair.a == host
        partner = plain(pair.b if is_first else pair.a)
        rates = (pair.a_to_b_gbit_s, pair.b_to_a_gbit_s)
        sends, receives = rates if is_first else rates[::-1]
        yield Cell(
            NAME_WIDTH + CELL_WIDTH * column,
            y,
            partner[:_NAME_LENGTH],
            pair.outcome,
            _width(sends, usual),
            _width(receives, usual),
            f"with {partner}: sends {_words(sends, usual)}, receives {_words(receives, usual)} ({pair.outcome})",
        )


def _width(rate: float | None, usual: float) -> int:
    return 0 if rate is None or usual <= 0 else max(1, min(BAR_WIDTH, round(BAR_WIDTH * rate / usual)))


def _words(rate: float | None, usual: float) -> str:
    if rate is None:
        return "nothing that was measured"
    return f"{rate:.3g} Gbit/s" + (f" ({rate / usual:.0%} of usual)" if usual > 0 else "")
