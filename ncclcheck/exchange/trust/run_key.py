"""The key of a run, and what is derived from it: HKDF (RFC 5869) and HMAC, both with SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from msgspec import Struct

from ncclcheck.model.errors import DecodeError

LEAST_BYTES = 16
MOST_BYTES = 4096
TAG_BYTES = 32
_HEX_DIGITS = 2 * TAG_BYTES


class RunKey(Struct, frozen=True):
    """The secret that all processes of a run share, and where it is from, in the words of the report."""

    secret: bytes
    by: str

    def __repr__(self) -> str:
        """Return it without the secret: tracebacks and logs show it."""
        return f"RunKey(by={self.by!r})"

    def derived(self, purpose: str, *parts: bytes) -> bytes:
        """Return a key for one purpose in one run: for other `parts` (nonces, the job) it is another one."""
        salt = hashlib.sha256(framed(*parts)).digest()  # as it is, HMAC would fill it up with zero bytes
        extracted = hmac.digest(salt, self.secret, "sha256")
        return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


class RefusedKey(Struct, frozen=True):
    """A key that was given, and that this process does not use; what it says itself, if that could be read at all.

    Who may have read such a key could say the same in this node's name: that it takes no part.
    """

    why: str
    key: RunKey | None = None


def new_key(by: str) -> RunKey:
    """Return a new random key."""
    return RunKey(secrets.token_bytes(32), by)


def framed(*parts: bytes) -> bytes:
    """Return the parts as one, each with its length before it, so that no other parts give the same."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def tag_of(key: bytes, *parts: bytes) -> str:
    """Return the HMAC of the parts, in hexadecimal digits."""
    return hmac.digest(key, framed(*parts), "sha256").hex()


def is_tag(tag: str | bytes, key: bytes, *parts: bytes) -> bool:
    """Return whether `tag` is the HMAC of the parts, in a time that says nothing about it."""
    tag_bytes = tag.encode(errors="replace") if isinstance(tag, str) else tag
    return hmac.compare_digest(tag_bytes, tag_of(key, *parts).encode())


def job_digest(prefix: str) -> str:
    """Return what stands for the job in messages, so that a node recognises another job at the same address."""
    return hashlib.sha256(prefix.encode()).hexdigest()[:32]


class SealedLines:
    """Lines in one direction of one connection, each with its HMAC before it. State: how many there were.

    The key is of this connection and direction, so a line of another connection, run or sender does not fit; nor does
    one that is repeated, left out or out of turn.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._count = key, 0

    def seal(self, line: bytes) -> bytes:
        """Return the next line, as it is sent."""
        tag = self._tag(line)
        self._count += 1
        return tag + b" " + line

    def open(self, sealed: bytes) -> bytes:
        """Return the next line that was received. Raises DecodeError if the sender does not have the key."""
        tag, line = sealed[:_HEX_DIGITS], sealed[_HEX_DIGITS + 1 :]
        if not hmac.compare_digest(tag, self._tag(line)):
            raise DecodeError("a line without the key of this connection")
        self._count += 1
        return line

    def _tag(self, line: bytes) -> bytes:
        return tag_of(self._key, self._count.to_bytes(8, "big"), line).encode()


def sealed_message(key: bytes, message: bytes) -> bytes:
    """Return a single message with its HMAC before it: a datagram, a value of a store."""
    return tag_of(key, message).encode() + b" " + message


def opened_message(key: bytes, sealed: bytes) -> bytes:
    """Return the message. Raises DecodeError if the sender does not have the key."""
    tag, message = sealed[:_HEX_DIGITS], sealed[_HEX_DIGITS + 1 :]
    if not is_tag(tag, key, message):
        raise DecodeError("a message without the key of this run")
    return message
