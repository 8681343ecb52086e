"""What the nodes count beside the series."""

from __future__ import annotations

from ncclcheck.measure.soak.counters import CounterBook, grown, growth_of
from ncclcheck.model.benchmarks.soak import NodeCounts
from tests.soak_builders import BEGAN, soak_block


def test_what_grows_always_is_left_out_and_stolen_time_counts() -> None:
    node = NodeCounts("a", {"tcp sent": 100, "tcp resent": 2, "eth0 rx_errors": 0}, steal=0.2)
    assert grown(node) == {("a", "tcp resent"): 2, ("a", "cpu steal, per cent"): 20}
    assert grown(NodeCounts("a", steal=0.01)) == {}


def test_a_counter_that_moved_with_a_drop_is_told_and_one_that_always_does_is_not() -> None:
    book = CounterBook()
    meanwhile = []
    for number in range(100):
        is_drop = 50 <= number < 60
        nodes = (
            NodeCounts("a", {"eth0 rx_errors": 7 if is_drop else 0, "tcp resent": 3}),
            NodeCounts("b", {"tcp resent": 40 if is_drop else 1}),
        )
        book.add(soak_block(number, nodes=nodes), BEGAN)
        if is_drop:
            meanwhile.append(nodes)
    assert book.moved(growth_of(meanwhile), 10) == ("b: tcp resent +400", "a: eth0 rx_errors +70")
    rows = {(row.host, row.name): row for row in book.rows()}
    assert rows["a", "eth0 rx_errors"].grown == 70
    assert rows["a", "eth0 rx_errors"].at_s[0] == 500.0
