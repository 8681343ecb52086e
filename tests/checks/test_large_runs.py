"""Checks, advice and report of many nodes: the work grows with the nodes, not with their pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from ncclcheck.model.codec import encode
from ncclcheck.model.formats.shared_values import decode_shared
from ncclcheck.model.saved import Saved
from ncclcheck.report.formats import rendered
from ncclcheck.run.judge import judge
from ncclcheck.run.options import RunOptions
from tests.large_runs import Kind, large_run

SMALL, LARGE = 128, 256  # both above 64, where a sample of the pairs is probed
MOST_CALLS = 5_500  # of Python and C functions, for one node more: load, checks, advice, text, JSON and HTML
MOST_GROWTH = 2.6  # twice the nodes; what is done for pairs of nodes would grow four times


def calls_of(work: Callable[[], object]) -> int:
    """How many functions Python and C were called: the same on a slow machine."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def report_of(data: bytes) -> None:
    report = judge(decode_shared(data, Saved), RunOptions(command="preflight"))
    for name in ("text", "json", "html"):
        rendered(report, name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("healthy", marks=pytest.mark.further), "broken"])
def test_the_work_grows_with_the_nodes(kind: Kind) -> None:
    report_of(encode(large_run(66, kind)))  # modules and templates are loaded once
    small, large = (encode(large_run(nnodes, kind)) for nnodes in (SMALL, LARGE))
    first, second = (calls_of(lambda data=data: report_of(data)) for data in (small, large))  # type: ignore[misc]
    assert second <= MOST_GROWTH * first, (first, second)
    assert (second - first) / (LARGE - SMALL) <= MOST_CALLS, (
        "what is equal on most nodes is to be judged once"
    )
