"""Small reads of files that may be missing, forbidden or gone in the next moment."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.model.fact import Fact

_LIMIT_BYTES = 1 << 20


def readable(text: str) -> str:
    """Return `text` without the lone surrogates that stand for undecodable bytes: JSON cannot carry them."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except (
        UnicodeEncodeError
    ):  # half a character of UTF-16, as a hostile file may hold: it stands for no byte
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_text(path: Path) -> Fact[str]:
    """Return the first MiB of a file as text, or why it could not be read."""
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        return missing_for(error, str(path))


def read_line(path: Path) -> Fact[str]:
    """Return the same for the one-line files of /sys and /proc, without white space around the line."""
    text = read_text(path)
    return text.strip() if isinstance(text, str) else text


def read_number(path: Path) -> Fact[int]:
    """Return the same for a file that holds one decimal number; anything else there is an error."""
    text = read_line(path)
    if not isinstance(text, str):
        return text
    try:
        return int(text)
    except ValueError as error:
        return missing_for(error, str(path))


def link_target(path: Path) -> Fact[str]:
    """Return the last part of what a symbolic link points to, as /sys names drivers and masters."""
    try:
        return readable(path.readlink().name)
    except OSError as error:
        return missing_for(error, str(path))
