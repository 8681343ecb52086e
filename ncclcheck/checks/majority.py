"""Comparing a value between hosts: the usual value, who differs from it, and ties that are said to be ties."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from msgspec import Struct

from ncclcheck.checks.hosts import named
from ncclcheck.model.finding import Evidence

V = TypeVar("V", bound=Hashable)
TIE = " (no majority)"  # behind the groups of a comparison in which no value is the most frequent


class HostGroup(Struct, Generic[V], frozen=True):
    """The hosts that share one value."""

    value: V
    hosts: tuple[str, ...]


class HostComparison(Struct, Generic[V], frozen=True):
    """A value on several hosts, the largest group first; groups of one size in order of their first host."""

    groups: tuple[HostGroup[V], ...]

    @property
    def differs(self) -> bool:
        """True when there is more than one value."""
        return len(self.groups) > 1

    @property
    def tie(self) -> bool:
        """True when no single value is the most frequent, so nobody can be called the odd one out."""
        return self.differs and len(self.groups[0].hosts) == len(self.groups[1].hosts)

    @property
    def usual(self) -> HostGroup[V] | None:
        """The most frequent value with its hosts; None in a tie."""
        return None if self.tie or not self.groups else self.groups[0]

    @property
    def odd(self) -> tuple[HostGroup[V], ...]:
        """The groups that are not the usual one; all of them in a tie."""
        return self.groups if self.tie else self.groups[1:]

    @property
    def odd_hosts(self) -> tuple[str, ...]:
        """The hosts a finding about the difference is on."""
        return tuple(host for group in self.odd for host in group.hosts)


def compare(values: Iterable[tuple[str, V]]) -> HostComparison[V]:
    """Return the values grouped by equality."""
    hosts: dict[V, list[str]] = {}
    for host, value in values:
        hosts.setdefault(value, []).append(host)
    groups = sorted(hosts.items(), key=lambda item: -len(item[1]))
    return HostComparison(tuple(HostGroup(value, tuple(dict.fromkeys(names))) for value, names in groups))


def sentence(comparison: HostComparison[V], show: Callable[[V], str] = str) -> str:
    """`2.21.5 on node03, 2.27.5 on node[01-02,04]`, the odd ones first; a tie is said to be one."""
    parts = [f"{show(group.value)} on {named(group.hosts)}" for group in comparison.odd]
    if comparison.usual is not None:
        parts.append(f"{show(comparison.usual.value)} on {named(comparison.usual.hosts)}")
    return ", ".join(parts) + (TIE if comparison.tie else "")


def evidence(
    comparison: HostComparison[V], subject: str, source: str, show: Callable[[V], str] = str
) -> tuple[Evidence, ...]:
    """One piece per group, each with the usual value as the expected one."""
    usual = comparison.usual
    expected = "the same on every node" if usual is None else show(usual.value)
    return tuple(
        Evidence(group.hosts, subject, show(group.value), expected, source) for group in comparison.groups
    )
