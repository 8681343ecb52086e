"""What one line means by itself: its rank, its group in the tables, and NCCL's own words in it. Pure."""

from __future__ import annotations

import re

from ncclcheck.logs.messages.known import Group, meaning_of
from ncclcheck.logs.messages.software import message_in
from ncclcheck.logs.readers import collectives
from ncclcheck.logs.readers.glance import LAST_ERROR

_LAST_ENTRY = "Last NCCL warning(error) log entry (may be unrelated) '"  # of XLA
LONGEST_BEFORE_LEVEL = 300  # of NCCL's own prefix
_OWN_RANK = re.compile(r"^\w{1,64}(?:Error|Exception): [Rr]ank (?P<rank>\d{1,6})[:,]")
_IN_BARRIER = re.compile(r"\brank: (?P<rank>\d{1,6}), (?:for )?key: store_based_barrier_key")
_SETS_UP = re.compile(r"\[(?P<rank>\d{1,6})\] is setting up NCCL communicator")


def rank_named_in(text: str) -> int | None:
    """Return the rank that torch's `[PG ... Rank N]` or barrier names, or that an exception's message begins with."""
    match = _OWN_RANK.search(text) or _SETS_UP.search(text) or _IN_BARRIER.search(text)
    return int(match["rank"]) if match else collectives.rank_in(text)


def group_of(text: str, word: str | None) -> Group | None:
    """Return what the tables know of the line; what looks like a host before a colon may be the message's own."""
    with_word = message_in(f"{word}: {text}") if word is not None else None
    return with_word or message_in(text)


def warning_in(text: str) -> str:
    """Return what NCCL itself says in the line: after its level WARN, or as torch's last error; empty for others."""
    if text.startswith(LAST_ERROR):
        return text[len(LAST_ERROR) :].strip()
    if _LAST_ENTRY in text:
        return text.partition(_LAST_ENTRY)[2].partition("'.")[0].rstrip("'")
    before, _, after = text[:2000].partition(" NCCL WARN ")
    return after.strip() if len(before) <= LONGEST_BEFORE_LEVEL else ""


def meant(warning: str) -> dict[str, str]:
    """Return what NCCL's table says about the text."""
    group = meaning_of(warning)
    values = {"text": warning[:255]}
    if group is None:
        return values
    return values | table_values(group)


def table_values(group: Group) -> dict[str, str]:
    """Return what the table says about a group."""
    values = {"group": group.id, "kind": group.kind, "means": group.means, "about": group.about}
    if group.ends:
        values["ends"] = "yes"
    return values | {"cause": group.cause, "certainty": group.certainty} if group.cause else values
