"""What the nodes count beside the series."""

from __future__ import annotations

from collections import Counter

from ncclcheck.measure.soak.counters import LOW_CLOCK, WITHOUT_CORE, CounterBook, Key, grown
from ncclcheck.model.benchmarks.soak import NodeCounts
from tests.soak_builders import BEGAN, soak_block


def test_what_grows_always_is_left_out_and_stolen_time_counts() -> None:
    node = NodeCounts("a", {"tcp sent": 100, "tcp resent": 2, "eth0 rx_errors": 0}, steal=0.2)
    assert grown(node) == {("a", "tcp resent"): 2, ("a", "cpu steal, per cent"): 20}
    assert grown(NodeCounts("a", steal=0.01)) == {}


def test_a_counter_that_moved_with_a_drop_is_told_and_one_that_always_does_is_not() -> None:
    book = CounterBook()
    meanwhile = Counter[Key]()
    for number in range(100):
        is_drop = 50 <= number < 60
        nodes = (
            NodeCounts("a", {"eth0 rx_errors": 7 if is_drop else 0, "tcp resent": 3}),
            NodeCounts("b", {"tcp resent": 40 if is_drop else 1}),
        )
        book.add(soak_block(number, nodes=nodes), BEGAN)
        if is_drop:
            meanwhile.update(book.growth_of(nodes))
    assert book.moved(meanwhile, 10) == ("b: tcp resent +400", "a: eth0 rx_errors +70")
    rows = {(row.host, row.name): row for row in book.rows()}
    assert rows["a", "eth0 rx_errors"].grown == 70
    assert rows["a", "eth0 rx_errors"].at_s[0] == 500.0


def test_waiting_for_a_core_is_told_beside_the_drop() -> None:
    book, meanwhile = CounterBook(), Counter[Key]()
    for number in range(60):
        node = NodeCounts("b", waited=0.62 if number >= 50 else 0.1)
        book.add(soak_block(number, nodes=(node,)), BEGAN)
        if number >= 50:
            meanwhile.update(book.growth_of([node]))
    assert book.moved(meanwhile, 10) == (f"b: {WITHOUT_CORE} +10",)


def test_a_clock_that_falls_is_told_beside_the_drop_with_its_reason() -> None:
    book, meanwhile = CounterBook(), Counter[Key]()
    reason = "GPU 3 blocks with hardware thermal slowdown"
    for number in range(60):
        is_hot = 40 <= number < 46
        node = NodeCounts(
            "b", {reason: 1} if is_hot else {}, clock_mhz=1200.0 if is_hot else 1980.0, temperature_c=60
        )
        book.add(soak_block(number, nodes=(NodeCounts("a", clock_mhz=1980.0), node)), BEGAN)
        if is_hot:
            meanwhile.update(book.growth_of([node]))
    assert book.moved(meanwhile, 6) == (f"b: {LOW_CLOCK} +6", f"b: {reason} +6")
    assert book.of_heat() == book.moved(meanwhile, 6)
    cool, hot = book.gpus()
    assert (cool.host, cool.usual_mhz, cool.least_mhz, cool.hottest_c) == ("a", 1980.0, 1980.0, 0)
    assert (hot.usual_mhz, hot.least_mhz, hot.least_at_s, hot.hottest_c) == (1980.0, 1200.0, 400.0, 60)
    assert {row.name for row in book.rows()} == {LOW_CLOCK, reason}
