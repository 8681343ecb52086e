"""What a process of a run has to tell members from strangers: the key, and a count of messages without it."""

from __future__ import annotations

import threading

from msgspec.structs import replace

from ncclcheck.exchange.trust.run_key import RunKey
from ncclcheck.model.authentication import Authentication, Foreign, ForeignCause

MOST_ORIGINS = 16
NO_KEY_THERE = "node 0 has no key"  # begins what a node says that has one
_LONGEST_NAME, _LONGEST_REASON = 60, 300
_MOST_RANK = 1 << 20


class Trust:
    """The run's key, None where there is none. State: the key, where it is only learned on joining; what was dropped.

    Several threads count here. `asks_munge`: a node that has no key may get one from munge.
    """

    def __init__(self, key: RunKey | None = None, *, asks_munge: bool = False) -> None:
        self.key, self.asks_munge = key, asks_munge
        self.said_without_key = b""  # the last such datagram from an address that this process asked
        self._lock = threading.Lock()
        self._dropped: dict[tuple[str, str], Foreign] = {}
        self._further = 0

    def drop(self, origin: str, cause: ForeignCause, claimed_name: str = "", node_rank: int = -1) -> None:
        """Count a message that has no place in this run. What it says of itself is kept as a claim."""
        place = _place(origin), cause
        with self._lock:
            known = self._dropped.get(place)
            if known is None and len(self._dropped) >= MOST_ORIGINS:
                self._further += 1
                return
            name = _printable(claimed_name, _LONGEST_NAME)
            rank = node_rank if -1 <= node_rank < _MOST_RANK else -1
            if known is not None:
                name, rank = known.said or name, known.node_rank if known.said else rank
            refuses = known.refuses if known else ""
            self._dropped[place] = Foreign(*place, 1 + (known.count if known else 0), name, rank, refuses)

    def note_refusal(self, origin: str, host: str, node_rank: int, why: str) -> bool:
        """Keep the claim of who was just dropped that it refuses its own key; return whether that is news."""
        place = _place(origin), "no-key"
        with self._lock:
            known = self._dropped.get(place)
            if known is None or known.refuses or not 0 <= node_rank < _MOST_RANK:
                return False
            name = _printable(host, _LONGEST_NAME)
            claim = replace(known, said=name, node_rank=node_rank, refuses=_printable(why, _LONGEST_REASON))
            self._dropped[place] = claim
            return True

    def nonce_of_probes(self, nonce: bytes) -> str:
        """Return what nodes prove to each other to know: the run's nonce, or what the key makes of it."""
        return (nonce if self.key is None else self.key.derived("probes", nonce)).hex()

    def authentication(self) -> Authentication:
        """Return it for the report."""
        with self._lock:
            foreign = tuple(self._dropped.values())
        return Authentication("" if self.key is None else self.key.by, foreign, self._further)


def _place(origin: str) -> str:
    return origin.partition("%")[0].removeprefix("::ffff:")[:_LONGEST_NAME]


def _printable(text: str, most: int) -> str:
    return "".join(letter for letter in text[:most] if letter.isprintable())
