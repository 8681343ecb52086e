"""How both ends of a connection prove that they have the run's key, without telling it.

Node 0 speaks first, with a challenge. The caller answers with one of its own and a proof, which is an HMAC over both;
node 0 answers with its proof. The keys of the connection are derived from both challenges, one for each direction.
What is said before is short, and nothing of it is believed.
"""

from __future__ import annotations

import secrets
from typing import Literal

from msgspec import Struct

from ncclcheck.exchange.trust.run_key import RunKey, SealedLines, framed, is_tag, job_digest, tag_of
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError

PROTOCOL = "ncclcheck-store-1"
LINE_BYTES = 4096
_CHALLENGE_LETTERS = 64


class Banner(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line, of node 0. `munge`: the run's key as a credential that only this user can read."""

    protocol: str
    challenge: str
    job: str
    munge: str = ""


class Introduction(Struct, frozen=True, forbid_unknown_fields=True):
    """The caller's line. Without a key it has no proof, and tells node 0 only who it is."""

    protocol: str
    challenge: str
    host: str
    node_rank: int
    proof: str


class Welcome(Struct, frozen=True, forbid_unknown_fields=True):
    """Node 0's answer: its proof, and the port at which the ranks of a benchmark meet; or why the caller is refused."""

    protocol: str
    proof: str = ""
    ranks_port: int = 0
    refused: Literal["", "other-key"] = ""


class Caller(Struct, frozen=True):
    """Who wants to join, in which job."""

    prefix: str
    host: str
    node_rank: int


class SealedSession(Struct, frozen=True):
    """The lines of both directions of a connection, at one of its ends."""

    sends: SealedLines
    receives: SealedLines


def new_banner(prefix: str, munge: str = "") -> Banner:
    """Return what node 0 says first, to one caller."""
    return Banner(PROTOCOL, secrets.token_hex(16), job_digest(prefix), munge)


def read_banner(line: bytes) -> Banner | None:
    """Return the banner; None for what another program says."""
    try:
        banner = decode(line, Banner, limit_bytes=LINE_BYTES)
    except DecodeError:
        return None
    if banner.protocol != PROTOCOL or len(banner.challenge) > _CHALLENGE_LETTERS:
        return None
    return banner


def introduced(banner: Banner, caller: Caller, key: RunKey | None) -> Introduction:
    """Return the caller's line."""
    introduction = Introduction(PROTOCOL, secrets.token_hex(16), caller.host, caller.node_rank, "")
    if key is None:
        return introduction
    proof = tag_of(_proof_key(key, banner), b"caller", *_signed_parts(introduction))
    return Introduction(
        introduction.protocol, introduction.challenge, introduction.host, introduction.node_rank, proof
    )


def is_member(banner: Banner, introduction: Introduction, key: RunKey) -> bool:
    """Return whether the caller has the key."""
    is_ours = introduction.protocol == PROTOCOL and len(introduction.challenge) <= _CHALLENGE_LETTERS
    return is_ours and is_tag(
        introduction.proof, _proof_key(key, banner), b"caller", *_signed_parts(introduction)
    )


def welcomed(banner: Banner, introduction: Introduction, key: RunKey, ranks_port: int) -> Welcome:
    """Return node 0's answer to a member."""
    port = str(ranks_port).encode()
    proof = tag_of(_proof_key(key, banner), b"node 0", *_signed_parts(introduction), port)
    return Welcome(PROTOCOL, proof, ranks_port)


def is_node_0(banner: Banner, introduction: Introduction, key: RunKey, welcome: Welcome) -> bool:
    """Return whether who answers has the key."""
    port = str(welcome.ranks_port).encode()
    return is_tag(welcome.proof, _proof_key(key, banner), b"node 0", *_signed_parts(introduction), port)


def session_of(banner: Banner, introduction: Introduction, key: RunKey, *, is_caller: bool) -> SealedSession:
    """Return the lines of the connection, as one of its ends sends and receives them."""
    seen = framed(_banner_bytes(banner), *_signed_parts(introduction))
    up = SealedLines(key.derived("lines of the caller", seen))
    down = SealedLines(key.derived("lines of node 0", seen))
    return SealedSession(up, down) if is_caller else SealedSession(down, up)


def _proof_key(key: RunKey, banner: Banner) -> bytes:
    return key.derived("proof", _banner_bytes(banner))


def _banner_bytes(banner: Banner) -> bytes:
    return framed(banner.protocol.encode(), banner.challenge.encode(), banner.job.encode())


def _signed_parts(introduction: Introduction) -> tuple[bytes, ...]:
    return introduction.challenge.encode(), introduction.host.encode(), str(introduction.node_rank).encode()
