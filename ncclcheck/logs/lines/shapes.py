"""The shape of a line, its speaker, and how often the shape occurred; in bytes, since every line is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERS = b"0123456789abcdefABCDEF"
_TORCH_RANK = re.compile(rb"[ \[]Rank \d{1,6}\]| rank: \d{1,6}, ")  # the second of the store's barrier
# A time stamp before the speaker's label, perhaps after a launcher's number: no two lines would have the same label.
_STAMP = re.compile(
    rb"( {0,6}\d{1,6}: ?|\[[\w,.@-]{1,64}\](?:<\w+>)?: ?)?"
    rb"(?:\[?(?:\d{4}[-/])?\d\d[-/]\d\d[T_ ]|\[?(?=\d\d:)|[A-Z][a-z]{2} [ \d]\d )"
    rb"\d\d:\d\d:\d\d[^\s\]]{0,16}\]? ?"
).match
_RANKS = re.compile(rb"(?: ?\[rank\d{1,6}\]:){1,2}").match
_BEFORE_RANKS = (b"[rank", b" [rank")
_LONGEST_LABEL = 47  # bytes before the colon
_DIGITS = b"0123456789"
_COUNTER = re.compile(
    rb"(?<![A-Za-z])(?:step|iter|iteration|epoch|batch|update)s?[ =#_|/(\[]{1,8}\d", re.IGNORECASE
).search


def shape_of(line: bytes, *speaker: object) -> int:
    """Equal for lines (of the same speaker) that differ only in numbers, whether decimal or hexadecimal."""
    bare = line.translate(None, _NUMBERS)
    return hash((bare, *speaker)) if speaker else hash(bare)


def shapes_of(lines: list[bytes]) -> Iterable[int]:
    """Return the shape of each of some lines that have no line feed; much cheaper than to ask for one by one."""
    return map(hash, b"\n".join(lines).translate(None, _NUMBERS).split(b"\n")) if lines else ()


def speaker_of(line: bytes) -> bytes:
    """Return the label of a line, with the rank that torch names in it (`[Rank 3]`, `rank: 3, `) if there is one."""
    match = _TORCH_RANK.search(line, 0, 256)
    return label_of(line) + match[0] if match is not None else label_of(line)


def label_of(line: bytes) -> bytes:
    """Return what identifies the speaker of a line: the text before its first colon, with torch's `[rankN]:` after it.

    A time stamp is no part of it. A progress bar, which counts up before its first colon, has none.
    """
    start, launcher = 0, b""
    colon = line.find(b":", 0, _LONGEST_LABEL + 1)
    if colon > 0 and line[colon - 1] in _DIGITS and (stamp := _STAMP(line)):
        start, launcher = stamp.end(), stamp[1] or b""
        colon = line.find(b":", start, start + _LONGEST_LABEL + 1)
    if colon < 0:
        return launcher
    end = colon + 1
    if line.startswith(_BEFORE_RANKS, end) and (ranks := _RANKS(line, end)):
        end = ranks.end()
    label = line[start:end]
    return launcher if b"%" in label else launcher + label


def has_no_numbers(label: bytes) -> bool:
    """Return True if nothing in it is left out of a shape: all lines of one shape have that label, or none."""
    return label.translate(None, _NUMBERS) == label


def is_counting(label: bytes) -> bool:
    """Return True if the text before a colon is the number of a step, which is no speaker."""
    return _COUNTER(label) is not None


class Repetitions:
    """Counts up to `enough` of each of at most `most` shapes."""

    def __init__(self, enough: int, most: int) -> None:
        self._counts: dict[int, int] = {}
        self._enough, self._most = enough, most

    def forget(self) -> None:
        """Forget all of them."""
        self._counts.clear()

    def has_enough(self, shape: int) -> bool:
        """Return True if enough lines of that shape were seen."""
        return self._counts.get(shape, 0) >= self._enough

    def is_one_more(self, shape: int) -> bool:
        """Return True if enough lines of that shape were seen before; else count this one."""
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

    @property
    def is_left(self) -> bool:
        """Return True while one more may be looked at."""
        return self._left > 0

    def refill(self, lines: int = 0) -> None:
        """Begin a batch: allow at least its share of lines, or so many."""
        self._left = max(self._left, self._per_batch, lines)

    def take(self) -> bool:
        """Return True if one more may be looked at."""
        self._left -= 1
        return self._left >= 0
