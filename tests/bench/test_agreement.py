"""The ranks tell each other numbers; that they all get the same ones is tested with two in `test_workers.py`."""

from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from ncclcheck.bench.agreement import BatchReport, barrier, exchange
from ncclcheck.bench.gathering import DOCUMENT_BYTES, gather_documents
from ncclcheck.bench.gpu.device import open_device
from ncclcheck.bench.progress_page import ProgressPage, new_page, read_page

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("group")]
REPORT = BatchReport(
    1.25, 3.0, 4.0, 2.0, 41.0, float(1 << 40), -0.0, 16777217.0, 0.5, 1980.5, 1.0, [10.5, 1e9, 0.1]
)


@pytest.mark.parametrize("durations", [[], [0.1], [1.0] * 500])
def test_what_a_rank_reports_arrives_to_the_last_bit(durations: list[float]) -> None:
    own = replace(REPORT, durations_us=durations)
    assert exchange(own, open_device("gloo", 0), ProgressPage(None)) == [own]


def test_a_damaged_element_that_is_no_number_arrives_as_such() -> None:
    own = BatchReport(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, float("nan"), float("inf"), 0.0, 0.0, 0.0, [])
    (found,) = exchange(own, open_device("gloo", 0), ProgressPage(None))
    assert found.got != found.got
    assert found.expected == float("inf")


def test_barriers_and_exchanges_are_calls_that_say_nothing_about_how_long_calls_take() -> None:
    descriptor = new_page("test")
    progress, device = ProgressPage(descriptor), open_device("gloo", 0)
    barrier(device, progress)
    exchange(REPORT, device, progress)
    seen = read_page(descriptor)
    os.close(descriptor)
    assert (seen.calls, seen.inside, seen.longest_call_ns) == (2, False, 0)


def test_documents_are_gathered_whole_or_not_at_all() -> None:
    device, progress = open_device("gloo", 0), ProgressPage(None)
    assert gather_documents(b'{"rank": 0}', 1, device, progress) == [b'{"rank": 0}']
    assert gather_documents(b"x" * (DOCUMENT_BYTES + 1), 1, device, progress) == [b""]
