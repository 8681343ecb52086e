"""The key of a run: derived keys differ, tags fit nothing else, and the secret is shown nowhere."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from ncclcheck.exchange.trust.run_key import (
    RunKey,
    SealedLines,
    framed,
    new_key,
    opened_message,
    sealed_message,
)
from ncclcheck.model.errors import DecodeError

KEY = RunKey(b"a secret that is long enough", "a test")


def test_a_derived_key_is_hkdf() -> None:
    extracted = hmac.new(hashlib.sha256(framed(b"job")).digest(), KEY.secret, hashlib.sha256).digest()
    expanded = hmac.new(extracted, b"purpose\x01", hashlib.sha256).digest()
    assert KEY.derived("purpose", b"job") == expanded


def test_purposes_and_parts_give_different_keys() -> None:
    keys = {KEY.derived("a"), KEY.derived("b"), KEY.derived("a", b"x"), KEY.derived("a", b"x", b"")}
    assert len(keys | {new_key("").derived("a")}) == 5
    assert framed(b"ab", b"c") != framed(b"a", b"bc")


def test_it_is_not_shown() -> None:
    assert "secret" not in repr(KEY) + str(KEY) + f"{KEY!r}"


@pytest.mark.parametrize("damage", [b"", b"x", b" " * 70, "\u2028".encode() * 40])
def test_a_message_that_was_made_without_the_key_is_refused(damage: bytes) -> None:
    with pytest.raises(DecodeError):
        opened_message(b"k" * 32, damage)


def test_every_changed_bit_is_noticed() -> None:
    sealed = sealed_message(b"k" * 32, b"message")
    assert opened_message(b"k" * 32, sealed) == b"message"
    for place in (0, 63, 65, len(sealed) - 1):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(DecodeError):
            opened_message(b"k" * 32, bytes(changed))


def test_lines_come_once_and_in_turn() -> None:
    sender, lines = SealedLines(b"k" * 32), [b"first", b"second", b"third"]
    first, second, third = [sender.seal(line) for line in lines]
    receiver = SealedLines(b"k" * 32)
    assert receiver.open(first) == b"first"
    for wrong in (first, third):
        with pytest.raises(DecodeError):
            SealedLines(b"k" * 32).open(second)
        with pytest.raises(DecodeError):
            receiver.open(wrong)
