"""Numbers and addresses as logs write them."""

from __future__ import annotations

import re

from ncclcheck.model.events import Reason

_ADDRESS = re.compile(
    r"\[?(?:::ffff:)?(?P<address>[^\s<>\[\]]{1,255}?)\]?(?:<(?P<port>\d{1,5})>|:(?P<colon>\d{1,5}))?$"
)
_REASONS: tuple[tuple[Reason, str], ...] = (
    ("refused", r"refused|\b(?:errno: ?)?111\b|software caused connection abort"),
    ("no-route", r"no route|\b113\b|EHOSTUNREACH|host (?:is )?(?:down|unreachable)"),
    ("unreachable", r"network is unreachable|\b101\b|ENETUNREACH"),
    ("timed-out", r"timed? ?-?out|\b110\b|ETIMEDOUT"),
    ("reset", r"reset by peer|\b104\b|broken pipe"),
    ("no-address", r"cannot assign requested|\b99\b|name or service|invalid argument|address family"),
)


def whole(text: str | None) -> int | None:
    """Return the number, or None where there is none or it has more digits than any counter."""
    return int(text) if text and len(text) <= 20 and text.isdecimal() else None  # noqa: PLR2004 (2^64 has 20)


def address_and_port(text: str) -> tuple[str, int]:
    """`10.0.0.1<40000>`, `[::ffff:10.0.0.1]:29500`, `node01:29500`: address and port, 0 where there is none."""
    match = _ADDRESS.match(text.strip().rstrip(".,;"))
    if match is None:
        return text[:255], 0
    return match["address"], whole(match["port"] or match["colon"]) or 0


def reason_of(text: str) -> Reason:
    """Return what the words or the error number of a failed connection mean."""
    for reason, pattern in _REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    return "other"
