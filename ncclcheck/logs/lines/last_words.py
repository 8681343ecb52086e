"""What a file says last: its last lines in words that none before had, those of a tracker, and a shell's prompt."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ncclcheck.logs.lines.prefix import parse as parse_prefix
from ncclcheck.logs.lines.progress import is_of_tracker, is_prompt
from ncclcheck.model.events import LogPosition, Remark

_LONGEST = 600  # of a line that is kept
_NONE = (0, b"")
_MOST = 24  # new lines that are kept


class LastWords:
    """Takes the lines of one file; a tracker repeats at its end what the program logged, so that is not new."""

    def __init__(self) -> None:
        self._new: deque[tuple[int, bytes]] = deque(maxlen=_MOST)
        self._of_tracker = self._last = _NONE

    def take_new(self, line: bytes, number: int) -> None:
        """Take an ordinary line of a shape that no line before it had."""
        if is_of_tracker(line):
            self._of_tracker = (number, line)
        else:
            self._new.append((number, line[:_LONGEST]))

    def take_last_of(self, lines: Sequence[bytes], number: int) -> None:
        """Take lines of which the last has that number: the last one that is not empty may be the last of the file."""
        self._last = next(
            ((number - at, line) for at, line in enumerate(reversed(lines)) if line.strip()), self._last
        )

    def end(self, file: str, work: int) -> Iterator[Remark]:
        """Yield what the file said after its last line of work, and forget it."""
        prompt = self._last if is_prompt(self._last[1]) else _NONE
        lines_by_topic = (
            *(("new-words", line) for line in self._new),
            ("tracker-words", self._of_tracker),
            ("at-prompt", prompt),
        )
        for topic, (number, line) in lines_by_topic:
            if number > work:
                text = parse_prefix(line[:_LONGEST].decode("utf-8", "replace")).message
                yield Remark(LogPosition(file, number), text, topic)
        self._new.clear()
        self._of_tracker = self._last = _NONE
