"""What all formats of the advised environment share: its comments, and which settings any of them can express."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ncclcheck.model.report import Advice, Setting

NOTHING = "ncclcheck: nothing to set"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def comment(text: str) -> str:
    """One line behind a #: control characters would end the comment, or speak to the terminal."""
    return "# " + "".join(character if character.isprintable() else "?" for character in text)


def explained(advice: Advice, lines_of: Callable[[Setting], Iterator[str]]) -> Iterator[str]:
    """Each reason once as a comment, before the lines of the settings it stands for; then the notes.

    A setting whose name or value no environment can hold is a comment too.
    """
    if not advice.env:
        yield comment(NOTHING)
    seen: set[str] = set()
    for setting in advice.env:
        reason = f"{setting.why}. Proof ({setting.proof}): {setting.evidence}"
        if reason not in seen:
            seen.add(reason)
            yield comment(reason)
        if _NAME.fullmatch(setting.name) and "\0" not in (setting.value or ""):
            yield from lines_of(setting)
        else:
            yield comment(f"left out: {setting.name!r} cannot be an environment variable")
    for note in advice.notes:
        yield comment(note)


def per_host(setting: Setting) -> str:
    """For a comment of a format that cannot choose by host: who gets which value."""
    value = f"{setting.name} unset" if setting.value is None else f"{setting.name}={setting.value!r}"
    return f"only on {', '.join(setting.hosts)}: {value}"
