"""Greetings: proofs that fit one call, one direction and one run."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.exchange.probe.greeting import (
    LINE_BYTES,
    Heard,
    ProbeGreeting,
    answered_by,
    first_line,
    is_answer,
    is_caller,
    line_of,
    read_line,
)

OWN = ProbeGreeting("n" * 64, 1, 65535, "bandwidth/12345678/12")


def test_both_ends_know_each_other_and_the_nonce_is_not_sent() -> None:
    said = read_line(line_of(first_line(OWN)))
    assert is_caller(said, OWN.nonce)
    answer = read_line(line_of(answered_by(said, ProbeGreeting(OWN.nonce, 7))))
    assert is_answer(answer, said, OWN.nonce)
    assert OWN.nonce.encode() not in line_of(said) + line_of(answer)
    assert len(line_of(said)) < LINE_BYTES


def test_nothing_of_it_can_be_changed_or_used_for_something_else() -> None:
    said = first_line(OWN)
    for changed in (replace(said, ticket=2), replace(said, channel="x"), replace(said, challenge="0" * 32)):
        assert not is_caller(changed, OWN.nonce)
    assert not is_caller(said, "another")
    assert not is_caller(first_line(ProbeGreeting("", 1)), "")
    assert not is_answer(said, said, OWN.nonce)
    assert not is_answer(answered_by(first_line(OWN), OWN), said, OWN.nonce)


def test_a_call_is_heard_once() -> None:
    heard, said = Heard(), first_line(OWN)
    assert [heard.is_new(said), heard.is_new(said), heard.is_new(first_line(OWN))] == [True, False, True]
