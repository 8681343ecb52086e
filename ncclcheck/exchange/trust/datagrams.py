"""Single datagrams to node 0 and back, authenticated where the run has a key, and never taken twice.

Node 0 takes only a message that carries the challenge of this run, which the sender learns from a first answer. The
answer carries what the sender made up for it. So no datagram of another run, or of a caller before, has any effect.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable

from msgspec import Struct

from ncclcheck.exchange.trust.munge import key_in_credential
from ncclcheck.exchange.trust.run_key import RunKey, opened_message, sealed_message
from ncclcheck.exchange.trust.trust import Trust
from ncclcheck.model.errors import DecodeError

LIMIT_BYTES = 4096 + 256  # a message with its HMAC and both challenges
_NONCE_LETTERS = 32
_NO_CHALLENGE = b"0" * _NONCE_LETTERS
_MUNGE = b"munge "
_MOST_ANSWERED = 3  # times the bytes received from an unverified sender: as RFC 9000, section 8.1
_MOST_ROUNDS = 3  # a credential of munge, a challenge, the answer


class Received(Struct, frozen=True):
    """A received datagram: a message of a member, answered by `reply`; or None, and the answer for others, if any."""

    message: bytes | None
    answer: bytes = b""
    reply: Callable[[bytes], bytes] = lambda payload: payload


class DatagramSeal:
    """Node 0's end. `credential` is what munge makes of the key, for those who ask it."""

    def __init__(self, trust: Trust, job_id: str, credential: Callable[[], str] = str) -> None:
        self._trust, self._job, self._credential = trust, job_id.encode(), credential
        self._challenge = secrets.token_hex(_NONCE_LETTERS // 2).encode()

    def received(self, data: bytes, origin: str) -> Received:
        """Return what to do with a datagram. Without a key everything is taken for a message."""
        if self._trust.key is None:
            return Received(data)
        up, down = _keys(self._trust.key, self._job)
        try:
            opened = opened_message(up, data)
        except DecodeError:
            self._trust.drop(origin, "no-key" if data[:1] == b"{" else "other-key")
            credential = self._credential() if data[:1] == b"{" else ""
            answer = _MUNGE + credential.encode() if credential else b""
            return Received(None, answer if len(answer) <= _MOST_ANSWERED * len(data) else b"")
        own_nonce, challenge = opened[:_NONCE_LETTERS], opened[_NONCE_LETTERS : 2 * _NONCE_LETTERS]

        def reply(payload: bytes) -> bytes:
            return sealed_message(down, own_nonce + self._challenge + payload)

        if challenge == self._challenge:
            return Received(opened[2 * _NONCE_LETTERS :], reply=reply)
        if challenge != _NO_CHALLENGE:
            self._trust.drop(origin, "other-key")
        return Received(None, reply(b""))


class FirstDatagram:
    """A message of a sender that has received nothing yet, so that several nodes may answer."""

    def __init__(self, payload: bytes, trust: Trust, job_id: str) -> None:
        self._trust, self._job = trust, job_id.encode()
        self._own = secrets.token_hex(_NONCE_LETTERS // 2).encode()
        if trust.key is None:
            self.sent = payload
        else:
            self.sent = sealed_message(_keys(trust.key, self._job)[0], self._own + _NO_CHALLENGE + payload)

    def wants_more(self, answer: bytes) -> bool:
        """Return whether a member sent this answer to ask for more: its challenge, or munge's credential."""
        if self._trust.key is None:
            return self._trust.asks_munge and answer.startswith(_MUNGE)
        try:
            return opened_message(_keys(self._trust.key, self._job)[1], answer)[:_NONCE_LETTERS] == self._own
        except DecodeError:
            return False


def answer_to(payload: bytes, caller: socket.socket, trust: Trust, job_id: str) -> bytes:
    """Return node 0's answer to the message. Raises OSError where none comes, DecodeError for one of another sender."""
    own_nonce, challenge = secrets.token_hex(_NONCE_LETTERS // 2).encode(), _NO_CHALLENGE
    for _ in range(_MOST_ROUNDS):
        if trust.key is None:
            caller.send(payload)
            data = caller.recv(LIMIT_BYTES)
            if not (trust.asks_munge and data.startswith(_MUNGE)):
                return data
            found = key_in_credential(data[len(_MUNGE) :].decode(errors="replace"))
            trust.key = found if isinstance(found, RunKey) else None
            continue
        up, down = _keys(trust.key, job_id.encode())
        caller.send(sealed_message(up, own_nonce + challenge + payload))
        opened = _opened(caller, down, own_nonce, trust)
        challenge, answer = opened[_NONCE_LETTERS : 2 * _NONCE_LETTERS], opened[2 * _NONCE_LETTERS :]
        if answer:
            return answer
    raise DecodeError("no answer but challenges")


def _opened(caller: socket.socket, down: bytes, own_nonce: bytes, trust: Trust) -> bytes:
    """Return the first message that node 0 sent in answer to `own_nonce`; messages of others do not extend the wait.

    Raises OSError where none comes in the time that the socket has.
    """
    timeout_s = caller.gettimeout() or 0.0
    deadline = time.monotonic() + timeout_s
    while True:
        caller.settimeout(max(deadline - time.monotonic(), 0.001))
        data = caller.recv(LIMIT_BYTES)
        try:
            opened = opened_message(down, data)
            if opened[:_NONCE_LETTERS] == own_nonce:
                caller.settimeout(timeout_s)
                return opened
        except DecodeError:
            trust.said_without_key = data  # the kernel takes it from the address that was asked alone
        if time.monotonic() > deadline:
            raise TimeoutError("no answer of node 0")


def _keys(key: RunKey, job: bytes) -> tuple[bytes, bytes]:
    return key.derived("datagrams to node 0", job), key.derived("datagrams of node 0", job)
