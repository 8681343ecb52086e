"""The first line of a connection between two nodes: each proves that it knows the run's nonce, without telling it.

In a run with a key the nonce is derived from that, so whoever sees the nodes' messages does not know it either.
"""

from __future__ import annotations

import secrets

from msgspec import Struct

from ncclcheck.exchange.trust.run_key import is_tag, tag_of
from ncclcheck.model.codec import decode, encode

LINE_BYTES = 512
_CHALLENGE_LETTERS = 32


class ProbeGreeting(Struct, frozen=True):
    """Who is calling, with the run's nonce, which stays on this node.

    With a `channel` the connection is not probed but handed over under that name (see `exchange.channels`).
    """

    nonce: str
    ticket: int
    segment_bytes: int = 0
    channel: str = ""


class GreetingLine(Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent of it. The proof is an HMAC over all the rest; an answer repeats the caller's challenge."""

    challenge: str
    ticket: int
    segment_bytes: int
    channel: str
    proof: str


def first_line(greeting: ProbeGreeting) -> GreetingLine:
    """Return what a caller says first."""
    return _line(b"call", secrets.token_hex(_CHALLENGE_LETTERS // 2), greeting)


def answered_by(called: GreetingLine, own_greeting: ProbeGreeting) -> GreetingLine:
    """Return what a listener answers."""
    return _line(b"answer", called.challenge, own_greeting)


def line_of(greeting: GreetingLine) -> bytes:
    """Return it as it is sent."""
    return encode(greeting) + b"\n"


def read_line(line: bytes) -> GreetingLine:
    """Return the received greeting. Raises DecodeError for anything else."""
    return decode(line, GreetingLine, limit_bytes=LINE_BYTES)


def is_caller(greeting: GreetingLine, nonce: str) -> bool:
    """Return whether a node of this run said it."""
    is_whole = len(greeting.challenge) == _CHALLENGE_LETTERS
    return bool(nonce) and is_whole and is_tag(greeting.proof, nonce.encode(), b"call", *_parts(greeting))


def is_answer(answer: GreetingLine, greeting: GreetingLine, nonce: str) -> bool:
    """Return whether a node of this run answered it to this caller."""
    is_ours = answer.challenge == greeting.challenge
    return is_ours and is_tag(answer.proof, nonce.encode(), b"answer", *_parts(answer))


class Heard:
    """The calls that were taken, so that none is taken twice. State: their challenges, the last ones."""

    _MOST = 1 << 16

    def __init__(self) -> None:
        self._challenges: dict[str, None] = {}

    def is_new(self, greeting: GreetingLine) -> bool:
        """Return whether it has not come before, and remember it."""
        if greeting.challenge in self._challenges:
            return False
        if len(self._challenges) >= self._MOST:
            del self._challenges[next(iter(self._challenges))]
        self._challenges[greeting.challenge] = None
        return True


def _line(role: bytes, challenge: str, greeting: ProbeGreeting) -> GreetingLine:
    unsigned = GreetingLine(challenge, greeting.ticket, greeting.segment_bytes, greeting.channel, "")
    proof = tag_of(greeting.nonce.encode(), role, *_parts(unsigned))
    return GreetingLine(challenge, unsigned.ticket, unsigned.segment_bytes, unsigned.channel, proof)


def _parts(greeting: GreetingLine) -> tuple[bytes, ...]:
    fields = greeting.challenge, str(greeting.ticket), str(greeting.segment_bytes), greeting.channel
    return tuple(field.encode(errors="replace") for field in fields)
