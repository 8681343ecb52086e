"""Hosts folded to few words, whatever they are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.report.text.fold import fold_hosts


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["node01", "node03", "node02", "node07", "node02"], "node[01-03,07]"),
        (["gpu-a", "gpu-b"], "gpu-a,gpu-b"),
        (["10.0.0.1", "10.0.0.2"], "10.0.0.[1-2]"),
        ([], ""),
        ([""], "(no name)"),
        (["node01", "node02", "@all", "x[1-9]"], "node[01-02],@all,x[1-9]"),
        (["a\x1b[31mb\n"], r"a\x1b[31mb\n"),
    ],
)
def test_hosts_are_folded(hosts: list[str], text: str) -> None:
    assert fold_hosts(hosts) == text


@given(st.lists(st.text(max_size=12)))
def test_no_name_breaks_it_or_leaves_an_unprintable_character(hosts: list[str]) -> None:
    assert fold_hosts(hosts).isprintable() or any(not name.isascii() for name in hosts)
