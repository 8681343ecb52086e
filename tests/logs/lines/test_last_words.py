"""What a file says last: new words, a tracker's, and a prompt; each with its line."""

from __future__ import annotations

from ncclcheck.logs.lines.last_words import LastWords


def said(words: LastWords, work: int = 0) -> list[tuple[str, int, str]]:
    return [(told.topic, told.place.line, told.text) for told in words.end("job.log", work)]


def test_the_last_new_words_are_told_with_their_lines() -> None:
    words = LastWords()
    words.take_new(b"loading", 3)
    words.take_new(b"done with it", 9)
    assert said(words) == [("new-words", 3, "loading"), ("new-words", 9, "done with it")]


def test_what_was_said_before_the_last_work_is_not_told() -> None:
    words = LastWords()
    words.take_new(b"loading", 3)
    words.take_new(b"done with it", 9)
    assert said(words, 5) == [("new-words", 9, "done with it")]


def test_only_so_many_new_words_are_kept() -> None:
    words = LastWords()
    for number in range(1, 100):
        words.take_new(b"w" * number, number)
    kept = [line for _, line, _ in said(words)]
    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) < 50


def test_words_of_a_tracker_hide_none_of_the_program() -> None:
    words = LastWords()
    words.take_new(b"giving up", 3)
    words.take_new(b"wandb:   acc 0.9", 9)
    assert said(words) == [("new-words", 3, "giving up"), ("tracker-words", 9, "wandb:   acc 0.9")]


def test_a_prompt_is_told_if_nothing_but_empty_lines_follows() -> None:
    words = LastWords()
    words.take_last_of([b"step 3", b"me@n1:~$ ", b""], 12)
    words.take_last_of([b"", b" "], 14)
    assert said(words) == [("at-prompt", 11, "me@n1:~$ ")]
    words.take_last_of([b"me@n1:~$ ", b"step 4"], 16)
    assert said(words) == []


def test_another_file_begins_with_nothing() -> None:
    words = LastWords()
    words.take_new(b"loading", 3)
    assert said(words)
    assert said(words) == []
