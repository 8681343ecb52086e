"""The handshake: both ends prove the key, and nothing of another handshake fits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ncclcheck.exchange.trust.handshake import (
    Caller,
    introduced,
    is_member,
    is_node_0,
    new_banner,
    read_banner,
    session_of,
    welcomed,
)
from ncclcheck.exchange.trust.run_key import new_key
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError

KEY, OTHER = new_key("a test"), new_key("another")
CALLER = Caller("job/", "node2", 1)


def test_both_ends_prove_the_key_and_speak() -> None:
    banner = new_banner("job/")
    assert read_banner(encode(banner)) == banner
    said = introduced(banner, CALLER, KEY)
    assert is_member(banner, said, KEY)
    assert is_node_0(banner, said, KEY, welcomed(banner, said, KEY, 29))
    ours, theirs = (session_of(banner, said, KEY, is_caller=caller) for caller in (True, False))
    assert theirs.receives.open(ours.sends.seal(b"call")) == b"call"
    assert ours.receives.open(theirs.sends.seal(b"answer")) == b"answer"
    with pytest.raises(DecodeError):  # a line does not come back to its sender
        ours.receives.open(ours.sends.seal(b"call"))


def test_no_other_key_challenge_job_or_name_fits() -> None:
    banner = new_banner("job/")
    said = introduced(banner, CALLER, KEY)
    assert not is_member(banner, introduced(banner, CALLER, OTHER), KEY)
    assert not is_member(banner, introduced(banner, CALLER, None), KEY)
    assert not is_member(new_banner("job/"), said, KEY)
    assert not is_member(replace(banner, job="other"), said, KEY)
    assert not is_member(banner, replace(said, host="node3"), KEY)
    assert not is_member(banner, replace(said, node_rank=2), KEY)


def test_node_0_proves_itself_too() -> None:
    banner = new_banner("job/")
    said = introduced(banner, CALLER, KEY)
    welcome = welcomed(banner, said, KEY, 29)
    assert not is_node_0(banner, said, KEY, replace(welcome, ranks_port=30))
    assert not is_node_0(banner, said, KEY, replace(welcome, proof=said.proof))
    assert not is_node_0(banner, introduced(banner, CALLER, KEY), KEY, welcome)
    assert not is_node_0(banner, said, KEY, welcomed(banner, said, OTHER, 29))


@pytest.mark.parametrize(
    "line", [b"", b"HTTP/1.0 200 OK", b'{"protocol":"other","challenge":"","job":""}', b"[" * 5000]
)
def test_another_program_speaks_no_banner(line: bytes) -> None:
    assert read_banner(line) is None
