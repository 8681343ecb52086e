"""A line as read: its labels and the process it names, before its rank and host are resolved."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.logs.lines.prefix import Prefix
from ncclcheck.model.events import LogPosition


class Raw(Struct, frozen=True):
    """Where a line stands, its labels, and NCCL's own (host, process id) in it. A launcher may name `host` too."""

    file: str
    number: int
    prefix: Prefix
    process: tuple[str, int] | None
    host: str | None = None
    pid: int | None = None

    @property
    def is_labelled(self) -> bool:
        """Return True if labels before the message tell whose line it is."""
        prefix = self.prefix
        labels = (self.host, prefix.host, prefix.rank, prefix.task, prefix.local_rank, prefix.word)
        return any(label is not None for label in labels)

    def at(self, number: int) -> Raw:
        """Return the same speaker on another line."""
        return replace(self, number=number)

    def of_rank(self, rank: int) -> Raw:
        """Return the same line, about that rank."""
        return replace(self, prefix=replace(self.prefix, rank=rank))

    def of_local_rank(self, local_rank: int) -> Raw:
        """Return the same line, about that process of its node."""
        return replace(self, prefix=replace(self.prefix, local_rank=local_rank))

    def of_task(self, task: int) -> Raw:
        """Return the same line, about that task of the launcher."""
        return replace(self, prefix=replace(self.prefix, task=task, rank=None))

    def on(self, host: str, pid: int | None) -> Raw:
        """Return the same line, about that host."""
        return replace(self, host=host or self.host, pid=pid)

    def place(self) -> LogPosition:
        """Return what is certain at once; `ncclcheck.logs.lines.origin` knows more in the end."""
        return LogPosition(self.file, self.number, self.prefix.rank, self.host, self.prefix.time_s)


class RawWords:
    """First and last ordinary line of a speaker, as bytes; changed in place, since most lines of a log are such."""

    __slots__ = ("file", "first", "first_host", "first_number", "last", "last_host", "last_number", "lines")

    def __init__(self, file: str, number: int, line: bytes) -> None:
        self.file = file
        self.first_number, self.first = number, line
        self.last_number, self.last = number, line
        self.first_host = self.last_host = ""  # of the sections in which these lines stand
        self.lines = 1
