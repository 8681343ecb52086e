"""Lists of hosts as people and launchers write them: node sets, and the host files of MPI and DeepSpeed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ncclcheck.launch.reading import ENTRY, names_in, node_names
from ncclcheck.model.errors import UsageError

MOST_HOSTS = 4096
_USER = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)@(.+)", re.ASCII)
# What a name or address may consist of. ssh would take a leading dash for an option.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]{0,252}", re.ASCII)
_SLOTS = re.compile(r"(?:slots|max[-_]slots|cpu|count)=(\d{1,6})", re.ASCII)
_AFTER_COLON = re.compile(r"([^:]+):(\d{1,6})", re.ASCII)
_BARE = re.compile(r"\d{1,6}", re.ASCII)


class ListedHost(Struct, frozen=True):
    """One host: its name, the user to log in as (empty: ssh's own choice), and how many ranks it is to have."""

    name: str
    user: str = ""
    slots: int | None = None

    @property
    def target(self) -> str:
        """What ssh is given."""
        return f"{self.user}@{self.name}" if self.user else self.name


def parse_hosts(text: str, where: str) -> tuple[ListedHost, ...]:
    """Return `node[01-04],root@login1` in the order of the list, each host once. Raises UsageError, naming `where`."""
    found = [host for entry in _entries(text, where) for host in _entry(entry, where)]
    return _once(found, where)


def parse_hostfile(text: str, file: str) -> tuple[ListedHost, ...]:
    """Return the hosts of a file, in its order, each once; # begins a comment.

    Lines are `node01`, `node01 slots=8` (Open MPI, DeepSpeed; further words of that kind are ignored),
    `node01:8` (MPICH), `node01 8` (LSF), and each may name a set, `node[01-16] slots=8`. A host on several lines (PBS:
    one line per slot) counts once. Raises UsageError with file and line.
    """
    found: list[ListedHost] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            found += _line(words, f"--hostfile {file}, line {number}:")
    return _once(found, f"--hostfile {file}")


def _line(words: list[str], where: str) -> Iterable[ListedHost]:
    first, *rest = words
    slots: int | None = None
    if colon := _AFTER_COLON.fullmatch(first):
        first, slots = colon[1], int(colon[2])
    for word in rest:
        if match := _SLOTS.fullmatch(word):
            slots = int(match[1]) if word.startswith("slots") or slots is None else slots
        elif _BARE.fullmatch(word) and slots is None:
            slots = int(word)
        elif "=" not in word:
            raise UsageError(f"{where} {word[:60]!r} is neither slots=N nor a number of slots")
    hosts = [listed_host for entry in _entries(first, where) for listed_host in _entry(entry, where)]
    if not hosts:
        raise UsageError(f"{where} {first[:60]!r} is no name of a host")
    if slots == 0:  # Open MPI and DeepSpeed: present, and not to be used
        return []
    return [ListedHost(host.name, host.user, slots) for host in hosts]


def _entries(text: str, where: str) -> list[str]:
    """Return what stands between commas and blanks, without those in brackets."""
    if ENTRY.sub("", text).strip(", \t\n"):
        raise UsageError(f"{where} {text[:60]!r} is no host and no set of hosts like node[01-04]")
    return ENTRY.findall(text)


def _entry(entry: str, where: str) -> list[ListedHost]:
    login = _USER.fullmatch(entry)
    user, names = (login[1], login[2]) if login else ("", entry)
    if (count := names_in(names)) > MOST_HOSTS:
        raise UsageError(
            f"{where} {entry[:60]!r} names {count} hosts or more: at most {MOST_HOSTS} are taken at once"
        )
    plain = (names,) if _NAME.fullmatch(names) else node_names(names)
    if not plain or not all(_NAME.fullmatch(name) for name in plain):
        raise UsageError(f"{where} {entry[:60]!r} is no host and no set of hosts like node[01-04]")
    return [ListedHost(name, user) for name in plain]


def _once(found: list[ListedHost], where: str) -> tuple[ListedHost, ...]:
    hosts = {host.name: host for host in reversed(found)}
    if not hosts:
        raise UsageError(f"{where} names no host")
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"{where} names {len(hosts)} hosts: at most {MOST_HOSTS} are taken at once")
    return tuple(hosts[name] for name in dict.fromkeys(host.name for host in found))
