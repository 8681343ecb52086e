"""Single datagrams: who has proved nothing gets no more than a few times what he sent."""

from __future__ import annotations

import pytest

from ncclcheck.exchange.trust.datagrams import DatagramSeal
from ncclcheck.exchange.trust.run_key import new_key
from ncclcheck.exchange.trust.trust import Trust

CREDENTIAL = "MUNGE:" + "x" * 300 + ":"


@pytest.mark.parametrize(
    ("sent", "is_answered"), [(b"{", False), (b"{" + b"x" * 60, False), (b"{" * 400, True)]
)
def test_muges_credential_answers_no_datagram_that_is_much_smaller(sent: bytes, is_answered: bool) -> None:
    """Else node 0 would multiply what somebody sends in the name of a victim's address."""
    came = DatagramSeal(Trust(new_key("munge")), "job", lambda: CREDENTIAL).received(sent, "10.0.0.9")
    assert came.message is None
    assert bool(came.answer) == is_answered
    assert len(came.answer) <= 3 * len(sent)


def test_what_a_node_answers_is_never_answered_by_a_node() -> None:
    """So nobody can set two nodes to answer each other without end."""
    key = new_key("a test")
    first, second = (DatagramSeal(Trust(key), "job", lambda: CREDENTIAL) for _ in range(2))
    answer = first.received(b"{" * 400, "10.0.0.9").answer
    assert answer
    assert not second.received(answer, "10.0.0.1").answer
