"""What a process of a run has to tell members from strangers: the key, and a count of messages without it."""

from __future__ import annotations

import threading

from ncclcheck.exchange.trust.run_key import RunKey
from ncclcheck.model.authentication import Authentication, Foreign, ForeignCause

MOST_ORIGINS = 16
NO_KEY_THERE = "node 0 has no key"  # begins what a node says that has one
_LONGEST_NAME = 60
_MOST_RANK = 1 << 20


class Trust:
    """The run's key, None where there is none. State: the key, where it is only learned on joining; what was dropped.

    Several threads count here. `asks_munge`: a node that has no key may get one from munge.
    """

    def __init__(self, key: RunKey | None = None, *, asks_munge: bool = False) -> None:
        self.key, self.asks_munge = key, asks_munge
        self._lock = threading.Lock()
        self._dropped: dict[tuple[str, ForeignCause], Foreign] = {}
        self._further = 0

    def drop(self, origin: str, cause: ForeignCause, claimed_name: str = "", node_rank: int = -1) -> None:
        """Count a message that has no place in this run. What it says of itself is kept as a claim."""
        place = origin.partition("%")[0].removeprefix("::ffff:")[:_LONGEST_NAME], cause
        with self._lock:
            known = self._dropped.get(place)
            if known is None and len(self._dropped) >= MOST_ORIGINS:
                self._further += 1
                return
            name = "".join(letter for letter in claimed_name[:_LONGEST_NAME] if letter.isprintable())
            rank = node_rank if -1 <= node_rank < _MOST_RANK else -1
            if known is not None:
                name, rank = known.said or name, known.node_rank if known.said else rank
            self._dropped[place] = Foreign(*place, 1 + (known.count if known else 0), name, rank)

    def nonce_of_probes(self, nonce: bytes) -> str:
        """Return what nodes prove to each other to know: the run's nonce, or what the key makes of it."""
        return (nonce if self.key is None else self.key.derived("probes", nonce)).hex()

    def authentication(self) -> Authentication:
        """Return it for the report."""
        with self._lock:
            foreign = tuple(self._dropped.values())
        return Authentication("" if self.key is None else self.key.by, foreign, self._further)
