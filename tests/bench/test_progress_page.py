"""Another process can always say where a rank is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ncclcheck.bench.progress_page import PAGE_BYTES, Progress, ProgressPage, new_page, read_page


@pytest.fixture
def page() -> Iterator[int]:
    descriptor = new_page("test")
    yield descriptor
    os.close(descriptor)


def test_a_page_nobody_wrote_yet_says_starting(page: int) -> None:
    assert read_page(page) == Progress()


def test_the_page_says_which_call_a_rank_is_inside(page: int) -> None:
    progress = ProgressPage(page)
    progress.move("measuring", 5)
    progress.enter(7)
    seen = read_page(page)
    assert (seen.phase, seen.point, seen.iteration, seen.inside, seen.calls) == ("measuring", 5, 7, True, 1)
    assert seen.stamp_ns > 0
    progress.leave()
    assert not read_page(page).inside
    assert read_page(page).longest_call_ns > 0


def test_a_call_that_the_gpu_has_not_come_to_is_not_entered(page: int) -> None:
    progress = ProgressPage(page)
    progress.move("measuring", 5)
    progress.enter(7)
    progress.fall_behind()
    seen = read_page(page)
    assert (seen.inside, seen.calls, seen.gpu) == (False, 0, "behind")
    progress.see_gpu("silent")
    assert read_page(page) == Progress("measuring", 5, 7, gpu="silent", stamp_ns=seen.stamp_ns)
    progress.enter(7)
    assert (read_page(page).calls, read_page(page).gpu) == (1, "")


def test_a_barrier_says_nothing_about_how_long_calls_take(page: int) -> None:
    progress = ProgressPage(page)
    progress.enter()
    progress.leave(measured=False)
    assert read_page(page).longest_call_ns == 0


def test_an_error_is_told_with_the_place_it_came_from(page: int) -> None:
    progress = ProgressPage(page)
    progress.move("measuring", 2)
    progress.enter(4)
    progress.fail("communication", "RuntimeError: Connection closed by peer " + "x" * 9000)
    seen = read_page(page)
    assert (seen.error_kind, seen.phase, seen.point, seen.iteration) == ("communication", "measuring", 2, 4)
    assert seen.error.startswith("RuntimeError: Connection closed by peer")
    assert len(seen.error) <= 2048


def test_garbage_on_the_page_is_no_crash(page: int) -> None:
    os.pwrite(page, b"\xff" * PAGE_BYTES, 0)
    assert read_page(page) == Progress()


def test_a_write_that_is_cut_anywhere_leaves_what_was_written_before(page: int) -> None:
    progress = ProgressPage(page)
    progress.move("measuring", 5)
    progress.enter(7)
    progress.leave()
    known, before = read_page(page), os.pread(page, PAGE_BYTES, 0)
    progress.enter(8)
    newer, after = read_page(page), os.pread(page, PAGE_BYTES, 0)
    changed = [place for place in range(PAGE_BYTES) if before[place] != after[place]]
    written = range(changed[0], changed[-1] + 1)
    for until in (*written, written.stop):
        for rest in (before[until : written.stop], bytes(written.stop - until)):
            os.pwrite(page, after[:until] + rest + after[written.stop :], 0)
            assert read_page(page) in (known, newer), until
