"""Checks, advice and report of many nodes: the work grows with the nodes, not with their pairs."""

from __future__ import annotations

import sys
import time
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
MOST_CALLS = 4_300  # of Python and C functions, for one node more: load, checks, advice, text, JSON and HTML
MOST_GROWTH = 2.6  # twice the nodes; what is done for pairs of nodes would grow four times
MOST_FOR_VARIABLES = 5  # times the report of LARGE healthy nodes


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


def processor_s_of(work: Callable[[], object]) -> float:
    """The seconds on a core that the work takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


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


@pytest.mark.slow
def test_40_000_variables_of_one_node_cost_no_more_than_a_thousand_nodes() -> None:
    report_of(encode(large_run(66, "healthy")))
    usual, with_many = encode(large_run(LARGE, "healthy")), encode(large_run(8, "environment"))
    yardstick = min(processor_s_of(lambda: report_of(usual)) for _ in range(2))
    assert processor_s_of(lambda: report_of(with_many)) <= MOST_FOR_VARIABLES * yardstick
