"""The words that an AssertionError lacks are those of the line that asserts."""

from __future__ import annotations

from ncclcheck.logs.readers.assertions import Assertions


def test_a_bare_error_is_told_with_its_speakers_last_assertion_once() -> None:
    known = Assertions()
    known.read("rank 0", "assert len(batch) == 8")
    assert known.full_text("rank 1", "AssertionError") == "AssertionError"
    assert known.full_text("rank 0", "AssertionError") == "AssertionError: assert len(batch) == 8"
    assert known.full_text("rank 0", "AssertionError") == "AssertionError"


def test_an_error_with_words_keeps_them_and_a_frame_below_forgets_the_assertion() -> None:
    known = Assertions()
    known.read("rank 0", "assert check(batch)")
    assert known.full_text("rank 0", "AssertionError: too few") == "AssertionError: too few"
    known.read("rank 0", 'File "/home/me/data.py", line 7, in check')
    assert known.full_text("rank 0", "AssertionError") == "AssertionError"
