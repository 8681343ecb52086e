"""One order for all files, whatever their clocks say and however they were named."""

from __future__ import annotations

from itertools import permutations

import pytest

from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.logs.timeline import in_order, natural
from ncclcheck.model.events import AnyEvent, CommInit, LogFile, LogPosition, Remark


def said(file: str, line: int, time_s: float | None = None) -> Remark:
    return Remark(LogPosition(file, line, time_s=time_s), f"{file}{line}", "other")


def landmark(file: str, line: int, time_s: float | None = None, comm_id: str = "0xa") -> CommInit:
    return CommInit(LogPosition(file, line, time_s=time_s), f"{file}{line}", "complete", comm_id, 0, 2)


def order(*events: AnyEvent) -> str:
    files = tuple(LogFile(name, 0, 100) for name in dict.fromkeys(event.place.file for event in events))
    return " ".join(event.text for event in in_order(files, events))


def test_time_stamps_decide() -> None:
    assert order(said("a", 1, 3e6), said("b", 1, 2e6), said("b", 2, 4e6)) == "b1 a1 b2"


def test_a_clock_that_is_an_hour_off_is_set_by_the_communicators_start() -> None:
    events = (
        landmark("a", 1, 1e6),
        said("a", 2, 1e6 + 50),
        landmark("b", 1, 1e6 + 3600),
        said("b", 2, 1e6 + 3620),
    )
    assert order(*events).split()[2:] == ["b2", "a2"]


def test_clocks_that_agree_nearly_are_believed() -> None:
    events = (
        landmark("a", 1, 1e6),
        said("a", 2, 1e6 + 5.0),
        landmark("b", 1, 1e6 + 0.4),
        said("b", 2, 1e6 + 5.2),
    )
    assert order(*events).split()[2:] == ["a2", "b2"]


def test_a_clock_without_a_date_is_of_the_same_day() -> None:
    day = 86_400 * 100.0
    assert order(said("a", 1, 36_000.0), said("b", 1, day + 35_000), said("b", 2, day + 37_000)) == "b1 a1 b2"


def test_without_time_stamps_lines_count_from_the_landmarks() -> None:
    events = (said("a", 1), landmark("a", 50), said("a", 52), landmark("b", 5), said("b", 6), said("b", 9))
    assert order(*events) == "a1 a50 b5 b6 a52 b9"


def test_a_file_without_time_stamps_is_laid_along_the_landmarks_of_the_others() -> None:
    events = (landmark("a", 1, 1e6), said("a", 2, 1e6 + 9), said("b", 1), landmark("b", 7), said("b", 8))
    assert order(*events) == "b1 a1 b7 b8 a2"


def test_lines_of_one_file_keep_their_order() -> None:
    assert order(said("a", 2, 5e6), said("a", 1, 9e6), said("b", 1, 6e6)) == "a1 a2 b1"


@pytest.mark.parametrize("names", list(permutations("abc")))
def test_the_order_in_which_files_are_named_changes_nothing(names: tuple[str, ...]) -> None:
    events: dict[str, list[AnyEvent]] = {
        "a": [said("a", 1), landmark("a", 3), said("a", 9)],
        "b": [landmark("b", 3, 2e6), said("b", 9, 2e6 + 7)],
        "c": [said("c", 1), said("c", 9)],
    }
    assert order(*(event for name in names for event in events[name])) == order(
        *(event for name in "abc" for event in events[name])
    )


def test_rank2_comes_before_rank10() -> None:
    assert sorted(["rank10", "rank2", "rank"], key=natural) == ["rank", "rank2", "rank10"]


def test_the_first_error_is_that_of_the_earlier_time_whichever_file_is_read_first() -> None:
    files = {
        "rank0.log": b"2025-03-14T09:41:09Z ValueError: the later one\n",
        "rank1.log": b"2025-03-14T09:41:07Z starts\n2025-03-14T09:41:08Z ValueError: the earlier one\n",
    }
    for names in permutations(files):
        collector = Collector()
        for name in names:
            collector.read(name, batches([files[name]]))
        assert [event.place.rank for event in collector.log().events] == [1, 0]
