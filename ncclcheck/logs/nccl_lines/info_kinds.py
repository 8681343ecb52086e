"""The kinds of NCCL's INFO lines, cached by shape: nearly all say nothing new, and a look-up shows which do."""

from __future__ import annotations

import re
from typing import Final

from ncclcheck.logs.readers.glance import QUIET_STARTS, may_mean_something

MUTE: Final = 0  # says nothing
CHANNEL: Final = 1  # from which rank to which, and through what
NOTED: Final = 2  # of what the process uses
STAGE: Final = 3  # a communicator's start or end: each counts
CLOSELY: Final = 4  # may mean something

MEANT_NOTHING_ENOUGH = 32  # lines of a shape that meant nothing: neither does the next
_CHANNEL = re.compile(rb"(?:Channel|Ring) [^\r]{0,200} via [^\r]{1,80}$")  # `Ring` up to 2.4
# What ncclcheck.logs.nccl_lines.nccl_info reads; tests/logs/nccl_lines/test_info_kinds.py holds the two together.
_NOTED = re.compile(
    rb"Using|set by environment|ersion |n[rR]anks \d|coll channels|plugin|P2P plugin|GPU Direct RDMA|Bytes ->"
)
_STAGE = re.compile(rb"(?:Init START|COMPLETE)")


class InfoKinds:
    """`known`: the kind of each shape, of at most `most`."""

    def __init__(self, most: int) -> None:
        self.known: dict[int, int] = {}
        self._nothing: dict[int, int] = {}
        self._most = most

    def of(self, shape: int, message: bytes) -> int:
        """Return the kind of a message of that shape; remembered."""
        kind = self.known.get(shape)
        if kind is None:
            kind = kind_of(message)
            if len(self.known) < self._most:
                self.known[shape] = kind
        return kind

    def may_mean_something(self, shape: int, text: str) -> bool:
        """Return True if the text has words of alarm, and not all lines of its shape so far meant nothing."""
        return self._nothing.get(shape, 0) < MEANT_NOTHING_ENOUGH and is_alarming(text.encode())

    def meant_nothing(self, shape: int) -> None:
        """Count a line of that shape that meant nothing; after enough of them, look at no more."""
        count = self._nothing.get(shape, 0) + 1
        if count > 1 or len(self._nothing) < self._most:
            self._nothing[shape] = count
        if count >= MEANT_NOTHING_ENOUGH and self.known.get(shape) == CLOSELY:
            self.known[shape] = MUTE


def kind_of(message: bytes) -> int:
    """Return the kind of one message, without `NCCL INFO `."""
    if message.startswith((b"Channel ", b"Ring ")) and _CHANNEL.match(message):
        return CHANNEL
    if b"INFO " + message[:5] in QUIET_STARTS:
        return MUTE
    if _STAGE.search(message):
        return STAGE
    if _NOTED.search(message):
        return NOTED
    return CLOSELY if is_alarming(message) else MUTE


def is_alarming(message: bytes) -> bool:
    """Return True if the message has a word of alarm; what ends like a channel has its words by chance."""
    return may_mean_something(message) and (
        b" -> " not in message[-30:] or message.startswith(b"transport/shm.")
    )
