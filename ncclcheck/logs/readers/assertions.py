"""What a Python traceback asserts: the words of an AssertionError that has none of its own."""

from __future__ import annotations

from collections.abc import Hashable

_LONGEST = 200
_BARE = "AssertionError"


class Assertions:
    """The last `assert` of each speaker's open traceback. State: these lines."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._asserted: dict[Hashable, str] = {}

    def read(self, speaker: Hashable, text: str) -> None:
        """Take a line of a traceback below its first one: a new frame, or the code of the one before."""
        if text.startswith('File "'):
            self._asserted.pop(speaker, None)
        elif text.startswith("assert "):
            self._asserted[speaker] = text[:_LONGEST]

    def full_text(self, speaker: Hashable, text: str) -> str:
        """Return the text; of an AssertionError without words, with what was asserted."""
        if text.strip() != _BARE or speaker not in self._asserted:
            return text
        return f"{_BARE}: {self._asserted.pop(speaker)}"
