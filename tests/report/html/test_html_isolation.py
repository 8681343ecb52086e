"""The chart of the rounds of isolate: who met whom, how fast, and the bad ones first where not all fit."""

from __future__ import annotations

import re

from ncclcheck.model.benchmarks.isolation import IsolationRound, PairRate
from ncclcheck.report.html.html import to_html
from ncclcheck.report.html.html_isolation import BAR_WIDTH, MOST_ROWS, rounds_chart
from tests.isolation_builders import SLOW, isolate_report, isolated


def test_a_node_shows_its_partners_and_both_directions() -> None:
    chart = rounds_chart(isolated(nodes=(SLOW,)))
    assert chart is not None
    assert [(row.host, row.is_named) for row in chart.rows] == [
        ("node01", False), ("node02", False), ("node03", True), ("node04", False),
    ]  # fmt: skip
    (cell,) = chart.rows[2].cells
    assert (cell.partner, cell.outcome) == ("node04", "slow")
    assert (cell.sends, cell.receives) == (round(0.8 * BAR_WIDTH), BAR_WIDTH)
    (partner,) = chart.rows[3].cells
    assert (partner.sends, partner.receives) == (cell.receives, cell.sends)


def test_a_test_that_did_not_finish_has_no_bar_and_says_so() -> None:
    hung = IsolationRound(1, (PairRate("node01", "node02", None, None, "hang"),))
    chart = rounds_chart(isolated(rounds=(hung,)))
    assert chart is not None
    (cell,) = chart.rows[0].cells
    assert (cell.sends, cell.receives) == (0, 0)
    assert "nothing that was measured" in cell.title
    assert "(hang)" in cell.title


def test_of_many_nodes_the_bad_ones_are_drawn_and_the_others_counted() -> None:
    pairs = [PairRate(f"a{number:03}", f"b{number:03}", 10.0, 10.0, "ok") for number in range(100)]
    pairs.append(PairRate("z1", "z2", 5.0, 10.0, "slow"))
    chart = rounds_chart(isolated(rounds=(IsolationRound(1, tuple(pairs)),)))
    assert chart is not None
    assert len(chart.rows) == MOST_ROWS
    assert [row.host for row in chart.rows[:2]] == ["z1", "z2"]
    assert chart.left_out == 202 - MOST_ROWS


def test_the_page_draws_it_without_a_script_and_escapes_names() -> None:
    pairs = (PairRate("<b>x</b>", "node02", 10.0, 8.0, "slow"),)
    page = to_html(isolate_report(rounds=(IsolationRound(1, pairs),)))
    chart = page[page.index('id="pairs"') : page.index("</svg>", page.index('id="pairs"'))]
    assert "<b>" not in chart
    assert "&lt;b&gt;x" in chart
    assert len(re.findall("<rect", chart)) == 2 * 3


def test_without_pairs_there_is_no_chart() -> None:
    assert rounds_chart(None) is None
    assert rounds_chart(isolated(rounds=())) is None
