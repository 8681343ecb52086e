"""Whether the messages of a run were authenticated, by which key, and which messages were foreign."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

ForeignCause: TypeAlias = Literal[
    "no-key",  # no authentication at all: another program, or an ncclcheck without a key
    "other-key",  # ncclcheck with another key, or a message of another run
    "damaged",  # it belongs to a member's connection, and was changed on the way
]


class Foreign(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages without this run's key, which were dropped. `said`: the name that the sender gave, if any."""

    origin: str  # the sender's address
    cause: ForeignCause
    count: int
    said: str = ""
    node_rank: int = -1  # which it claims; -1: none
    refuses: str = ""  # why the sender does not use its own key, as it says


class Authentication(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the run's key is from: "munge", "ssh", "--key-file" ...; empty: the run was not authenticated.

    `foreign` names the first origins; `further` counts the messages of all others.
    """

    by: str = ""
    foreign: tuple[Foreign, ...] = ()
    further: int = 0
