"""The marks of a run in a shared folder: their names and contents, which only who knows the run's nonce can make."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import TypeAlias

from ncclcheck.facts.storage.marks import Mark
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.timeouts import SHARE_FILE_LIFETIME_S, SHARE_LOOK_S

MarksSeen: TypeAlias = tuple[Fact[tuple[int, ...]], float]  # whose marks were seen, and how long that took


def mark_of(folder: str, nonce: str, ticket: int) -> Mark:
    """Return the mark of the node with that ticket."""
    return Mark(folder, mark_name(nonce, ticket), mark_content(nonce, ticket), SHARE_FILE_LIFETIME_S)


def mark_name(nonce: str, ticket: int) -> str:
    """Return the name of a node's mark: of this run, and without its nonce, since others may list the folder."""
    return f".ncclcheck-{_digest('marks', nonce)[:16]}-{ticket}"


def mark_content(nonce: str, ticket: int) -> str:
    """Return what is in it, which nobody knows who does not know the nonce."""
    return _digest(f"mark of {ticket}", nonce)


def _digest(purpose: str, nonce: str) -> str:
    return hashlib.sha256(f"{purpose} {nonce}".encode()).hexdigest()


def look_for(mark: Mark, nonce: str, tickets: tuple[int, ...]) -> MarksSeen:
    """Return whose marks are seen in the folder of the own mark."""
    names: Mapping[str, int] = {mark_name(nonce, ticket): ticket for ticket in tickets}
    began = time.monotonic()
    seen = mark.seen({name: mark_content(nonce, ticket) for name, ticket in names.items()}, SHARE_LOOK_S)
    waited_s = round(time.monotonic() - began, 2)
    return seen if isinstance(seen, Missing) else tuple(sorted(names[name] for name in seen)), waited_s


def seen_or(found: MarksSeen | Missing) -> MarksSeen:
    """Return what was seen; where looking did not end, why."""
    return (found, 0.0) if isinstance(found, Missing) else found
