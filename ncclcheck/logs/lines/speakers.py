"""The first and the last ordinary line of each speaker: nearly every line of a large log passes here."""

from __future__ import annotations

from ncclcheck.logs.lines.raw import RawWords
from ncclcheck.logs.lines.shapes import is_counting, label_of

MOST_SPEAKERS = 8192
_MOST_STEMS = 8192
_DIGITS = b"0123456789"


class Speakers:
    """Takes the ordinary lines of one file after the other; `words` is who spoke them."""

    def __init__(self) -> None:
        self.words: list[RawWords] = []
        self._here: dict[bytes, RawWords] = {}
        self._counting: dict[bytes, bool] = {}  # labels without their digits: do they count steps?
        self._file = ""

    def begin_file(self, name: str) -> None:
        """Take the lines that follow as those of that file: no speaker of another one goes on in it."""
        self._file = name
        self._here = {}

    def take(self, line: bytes, number: int) -> None:
        """Take an ordinary line."""
        label = label_of(line)
        words = self._here.get(label)
        if words is None:
            label = self._without_counters(label)
            words = self._here.get(label)
            if words is None:
                self._begin(label, line, number)
                return
        words.last_number = number
        words.last = line
        words.lines += 1

    def _without_counters(self, label: bytes) -> bytes:
        stem = label.translate(None, _DIGITS)
        is_counter = self._counting.get(stem)
        if is_counter is None:
            is_counter = is_counting(label)
            if len(self._counting) < _MOST_STEMS:
                self._counting[stem] = is_counter
        return b"" if is_counter else label

    def _begin(self, label: bytes, line: bytes, number: int) -> None:
        if len(self.words) < MOST_SPEAKERS:
            words = RawWords(self._file, number, line)
            self._here[label] = words
            self.words.append(words)
