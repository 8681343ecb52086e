"""Nodes with one name in a report."""

from __future__ import annotations

from ncclcheck.report.namesakes import left_out, list_words, namesakes
from tests.report.test_node_lists import namesakes as report_of_namesakes
from tests.report.test_node_lists import report

MADE = report_of_namesakes("10.0.0.2", None)


def test_they_are_found_with_address_and_rank() -> None:
    found = namesakes(MADE)
    assert {host: namesake.words for host, namesake in found.items()} == {
        "node#1": "10.0.0.2, node rank 1",
        "node#2": "address not known, node rank 2",
    }
    assert namesakes(report()) == {}


def test_lists_have_names_or_addresses() -> None:
    assert list_words(MADE) == {"node01": "node01", "node#1": "10.0.0.2"}


def test_the_comment_says_whose_name_it_is() -> None:
    assert left_out(MADE, "node#2").endswith(
        "node at address not known, node rank 2: another node has the same name"
    )
    assert left_out(MADE, "$(reboot)") == "# a node is left out: what it calls itself is no host name"
