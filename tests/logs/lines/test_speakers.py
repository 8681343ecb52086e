"""Who speaks the ordinary lines of a log."""

from __future__ import annotations

from ncclcheck.logs.lines.shapes import shape_of
from ncclcheck.logs.lines.speakers import MOST_SPEAKERS, Speakers


def _spoken(*lines: bytes) -> list[tuple[bytes, bytes, int]]:
    speakers = Speakers()
    speakers.begin_file("train.log")
    for number, line in enumerate(lines, 1):
        speakers.take(line, number, shape_of(line))
    return [(words.first, words.last, words.lines) for words in speakers.words]


def test_the_first_and_the_last_line_of_each_speaker_are_kept() -> None:
    assert _spoken(b"[rank0]: one", b"[rank1]: two", b"[rank0]: three") == [
        (b"[rank0]: one", b"[rank0]: three", 2),
        (b"[rank1]: two", b"[rank1]: two", 1),
    ]


def test_hosts_that_differ_in_letters_of_hexadecimal_numbers_only_are_two_speakers() -> None:
    assert len(_spoken(b"node-a: hello", b"node-b: hello", b"node-a: hello")) == 2


def test_a_number_of_a_step_is_no_speaker() -> None:
    lines = [b"step %d/900: loss 2.%d" % (step, step) for step in range(100)]
    assert _spoken(*lines) == [(lines[0], lines[-1], 100)]


def test_a_progress_bar_is_one_speaker() -> None:
    lines = [b" %d%%|####  | %d/100 [00:%02d<01:00, 1.2it/s]" % (step, step, step) for step in range(60)]
    assert _spoken(*lines) == [(lines[0], lines[-1], 60)]


def test_a_speaker_of_one_file_does_not_go_on_in_the_next() -> None:
    speakers = Speakers()
    for name in ("a.log", "b.log"):
        speakers.begin_file(name)
        speakers.take(b"node1: hello", 7, shape_of(b"node1: hello"))
    assert [(words.file, words.lines) for words in speakers.words] == [("a.log", 1), ("b.log", 1)]


def test_no_more_speakers_are_kept_than_a_log_can_name() -> None:
    assert len(_spoken(*(b"n%d: hello" % node for node in range(MOST_SPEAKERS + 10)))) == MOST_SPEAKERS
