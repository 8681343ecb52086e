"""Names and numbers as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[object], limit: int = 6, *, count: int | None = None, last: str = " and ") -> str:
    """Return the names, each once: `a, b, c`; of more than `limit` the first and how many more: `a, b and 3 more`.

    `count` says how many there are where `names` are only the first of them.
    """
    unique = [str(name) for name in dict.fromkeys(names)]
    shown = unique[:limit]
    rest = (len(unique) if count is None else count) - len(shown)
    return ", ".join(shown) + (f"{last}{rest} more" if rest > 0 else "")


def joined(names: Iterable[str]) -> str:
    """Return all names, each once: `a`, `a and b`, `a, b and c`."""
    *first, end = dict.fromkeys(names) or ("",)
    return f"{', '.join(first)} and {end}" if first else end


def plural(count: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
