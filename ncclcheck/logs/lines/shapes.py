"""The shape of a line, its speaker, and how often the shape occurred; in bytes, since every line is asked."""

from __future__ import annotations

import re

_NUMBERS = b"0123456789abcdefABCDEF"
# A time stamp before the speaker's label, perhaps after a launcher's number: no two lines would have the same label.
_STAMP = re.compile(
    rb"(?:\[?(?:\d{4}[-/])?\d\d[-/]\d\d[T_ ]|\[?(?=\d\d:)|[A-Z][a-z]{2} [ \d]\d )"
    rb"\d\d:\d\d:\d\d[^\s\]]{0,16}\]? ?"
)
_LABEL = re.compile(rb"[^:]{0,47}:(?: ?\[rank\d{1,6}\]:){0,2}")
_TORCH_RANK = re.compile(rb"[ \[]Rank \d{1,6}\]")
_NUMBER_FIRST = re.compile(rb" {0,6}\d{1,6}: ?|\[[\w,.@-]{1,64}\](?:<\w+>)?: ?")


def shape_of(line: bytes, *speaker: object) -> int:
    """Equal for lines (of the same speaker) that differ only in numbers, whether decimal or hexadecimal."""
    bare = line.translate(None, _NUMBERS)
    return hash((bare, *speaker)) if speaker else hash(bare)


def speaker_of(line: bytes) -> bytes:
    """Return the label of a line with the rank that torch names in it (`[Rank 3]`), where no label tells the rank."""
    match = _TORCH_RANK.search(line, 0, 256)
    return label_of(line) + match[0] if match is not None else label_of(line)


def label_of(line: bytes) -> bytes:
    """Return what tells the speaker of a line: the text before its first colon, with torch's `[rankN]:` after it.

    A time stamp is no part of it.
    """
    match = _LABEL.match(line)
    if match is None:
        return b""
    label = match[0]
    if not label[-3:-1].isdigit():
        return label
    if stamp := _STAMP.match(line):
        return _label_after(b"", line[stamp.end() : stamp.end() + 128])
    number = _NUMBER_FIRST.match(line)
    if number and (stamp := _STAMP.match(line, number.end())):
        return _label_after(number[0], line[stamp.end() : stamp.end() + 128])
    return label


def _label_after(before: bytes, rest: bytes) -> bytes:
    match = _LABEL.match(rest)
    return before + match[0] if match else before


class Repetitions:
    """Counts up to `enough` of each of at most `most` shapes."""

    def __init__(self, enough: int, most: int) -> None:
        self._counts: dict[int, int] = {}
        self._enough, self._most = enough, most

    def has_enough(self, shape: int) -> bool:
        """Return True if enough of that shape were met."""
        return self._counts.get(shape, 0) >= self._enough

    def is_one_more(self, shape: int) -> bool:
        """Return True if enough of that shape were met before; else count this one."""
        count = self._counts.get(shape, 0)
        if count >= self._enough:
            return True
        if count or len(self._counts) < self._most:
            self._counts[shape] = count + 1
        return False


class Allowance:
    """So many lines may be looked at closely, and after that so many of each batch."""

    def __init__(self, freely: int, per_batch: int) -> None:
        self._left, self._per_batch = freely, per_batch

    def refill(self) -> None:
        """Begin a batch: allow at least its share of lines."""
        self._left = max(self._left, self._per_batch)

    def take(self) -> bool:
        """Return True if one more may be looked at."""
        self._left -= 1
        return self._left >= 0
