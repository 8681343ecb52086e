"""Comparing each variable between nodes, in one pass over the different environments and not over all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ncclcheck.checks.majority import HostComparison, HostGroup, compare


def compared_by_name(
    environments: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, HostComparison[str | None]]]:
    """Yield each variable that is not the same on all hosts, by name, with its values (None: not set)."""
    different: dict[frozenset[tuple[str, str]], int] = {}
    kind_of = {
        host: different.setdefault(frozenset(environment.items()), len(different))
        for host, environment in environments.items()
    }
    kinds = [dict(items) for items in different]
    known: dict[tuple[int, ...], HostComparison[int]] = {}
    for name in sorted({name for kind in kinds for name in kind}):
        values = [kind.get(name) for kind in kinds]
        first = {value: number for number, value in reversed(list(enumerate(values)))}
        if len(first) == 1:
            continue
        pattern = tuple(first[value] for value in values)  # many variables differ between the same hosts
        if pattern not in known:
            known[pattern] = compare((host, pattern[kind]) for host, kind in kind_of.items())
        yield (
            name,
            HostComparison(
                tuple(HostGroup(values[group.value], group.hosts) for group in known[pattern].groups)
            ),
        )
