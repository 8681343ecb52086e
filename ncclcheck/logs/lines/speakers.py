"""The first and the last ordinary line of each speaker: nearly every line of a large log passes here."""

from __future__ import annotations

from collections.abc import Callable

from ncclcheck.logs.lines.raw import RawWords
from ncclcheck.logs.lines.shapes import has_no_numbers, is_counting, label_of

MOST_SPEAKERS = 8192
_MOST_SHAPES = 8192


class Speakers:
    """Takes the ordinary lines of one file after the other; `words` is who spoke them."""

    def __init__(self) -> None:
        self.words: list[RawWords] = []
        self._here: dict[bytes, RawWords] = {}
        self._labels: dict[int, bytes] = {}  # of a shape, where no number is part of the label
        self._file = ""

    def begin_file(self, name: str) -> None:
        """Take the lines that follow as those of that file: no speaker of another one goes on in it."""
        self._file = name
        self._here = {}

    def place(self, host_of: Callable[[int], str]) -> None:
        """Note on which host the lines of this file were spoken, as its headings say."""
        for words in self._here.values():
            words.first_host, words.last_host = host_of(words.first_number), host_of(words.last_number)

    def take(self, line: bytes, number: int, shape: int) -> None:
        """Take an ordinary line of that shape."""
        label = self._labels.get(shape)
        if label is None:
            label = label_of(line)
            if not label or label not in self._here:
                label = self._named(label, shape)
        words = self._here.get(label)
        if words is None:
            self._begin(label, line, number)
            return
        words.last_number = number
        words.last = line
        words.lines += 1

    def _named(self, label: bytes, shape: int) -> bytes:
        """Return the label of a line, and remember it of its shape where all lines of that shape have it."""
        is_of_its_shape = has_no_numbers(label)
        if is_counting(label):
            label, is_of_its_shape = b"", True
        if is_of_its_shape and len(self._labels) < _MOST_SHAPES:
            self._labels[shape] = label
        return label

    def _begin(self, label: bytes, line: bytes, number: int) -> None:
        if len(self.words) < MOST_SPEAKERS:
            words = RawWords(self._file, number, line)
            self._here[label] = words
            self.words.append(words)
