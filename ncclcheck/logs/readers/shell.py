"""What a shell answers when it is asked how the last command ended: the line below `echo $?`."""

from __future__ import annotations

import re

_ASKED = re.compile(r"(?:^|[$#>%;] ?)\s?echo \$\?\s*$")
PATTERNS = (r"echo \$\?",)
_HIGHEST = 255


class Shell:
    """Remembers that the last line asked for the exit status."""

    def __init__(self) -> None:
        self._asked_at: int | None = None

    @property
    def is_asked(self) -> bool:
        """Return True while the answer may come."""
        return self._asked_at is not None

    def forget(self) -> None:
        """Nothing that was asked in one file is answered in the next."""
        self._asked_at = None

    def read(self, text: str, line: int) -> None:
        """Take a line that may ask."""
        if _ASKED.search(text):
            self._asked_at = line

    def status(self, text: str, line: int) -> int | None:
        """Return the status where this line is the answer."""
        if self._asked_at is None or line <= self._asked_at:
            return None
        asked_at, self._asked_at = self._asked_at, None
        answer = text.strip()
        is_answer = line == asked_at + 1 and answer.isdecimal() and len(answer) <= len(str(_HIGHEST))
        return int(answer) if is_answer and int(answer) <= _HIGHEST else None
