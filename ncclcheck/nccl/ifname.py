"""The grammar of NCCL_SOCKET_IFNAME as NCCL parses it, and Gloo's exact list."""

from __future__ import annotations

from msgspec import Struct

MAX_ENTRIES = 16  # MAX_IFS of NCCL's src/misc/socket.cc


class NamePattern(Struct, frozen=True):
    """A parsed value: at most one `^`, then at most one `=`, then names; see `parse`."""

    exclude: bool
    exact: bool
    entries: tuple[str, ...]

    def lists(self, name: str) -> bool:
        """Return True if the list itself covers `name`; an empty list covers every name, lo too."""
        if not self.entries:
            return True
        if self.exact:
            return name in self.entries
        return name.startswith(self.entries)

    def matches(self, name: str) -> bool:
        """Return True if NCCL keeps an interface (or address label) of this name."""
        return self.lists(name) != self.exclude


def is_set(value: str | None) -> bool:
    """Return True if NCCL takes a string variable as set: its length in bytes is greater than 1.

    So the empty string and one-character values (`e`, `^`, `=`) count as unset. NCCL src/misc/socket.cc, 2.14 to 2.32.
    """
    return value is not None and len(value.encode("utf-8", "surrogateescape")) > 1


def parse(value: str) -> NamePattern:
    """Return the pattern NCCL makes of a value of NCCL_SOCKET_IFNAME (or NCCL_OOB_NET_IFNAME).

    `^` and `=` count once, in this order, in front of the whole value; further on they are ordinary characters. Entries
    are split at commas, empty ones vanish, at most 16 are kept, nothing is trimmed, and what follows a colon is
    dropped. NCCL src/misc/socket.cc (findInterfaces) and src/misc/utils.cc (parseStringList), 2.14 to 2.32.
    """
    exclude = value.startswith("^")
    rest = value[1:] if exclude else value
    exact = rest.startswith("=")
    rest = rest[1:] if exact else rest
    return NamePattern(exclude, exact, split_list(rest))


def split_list(text: str, limit: int = MAX_ENTRIES) -> tuple[str, ...]:
    """Return the names of a list `name[:port],...`, at most `limit`, without empty ones and ports (parseStringList)."""
    names = (entry.partition(":")[0] for entry in text.split(","))
    return tuple(name for name in names if name)[:limit]


def parse_gloo(value: str | None) -> tuple[str, ...] | None:
    """Return the names in a value of GLOO_SOCKET_IFNAME, each exact; None where it counts as unset.

    One character or less counts as unset; the list is split at commas, and only a last empty entry vanishes; any
    other empty entry makes the start fail. torch/csrc/distributed/c10d/init.cpp (seen with torch 2.13).
    """
    if value is None or not is_set(value):
        return None
    names = value.split(",")
    return tuple(names[:-1] if names[-1] == "" else names)
