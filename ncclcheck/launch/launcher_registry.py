"""All launchers, found by walking the package `launchers`, and the lists that are derived from them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.line.launch_line import LineReader

_PACKAGE = "ncclcheck.launch.launchers"


@cache
def all_launchers() -> tuple[Launcher, ...]:
    """Return every launcher in the order in which they are asked. Raises ValueError for a name used twice."""
    found: dict[str, Launcher] = {}
    for module_info in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__, f"{_PACKAGE}."):
        for value in vars(importlib.import_module(module_info.name)).values():
            if not isinstance(value, Launcher):
                continue
            if found.setdefault(value.name, value) is not value:
                raise ValueError(f"launcher {value.name!r} is declared twice")
    return tuple(sorted(found.values(), key=lambda launcher: (launcher.precedence, launcher.name)))


def innermost_first() -> tuple[Launcher, ...]:
    """Return the launchers with the one first that starts a process last: of mpirun inside srun, mpirun."""
    return tuple(sorted(all_launchers(), key=lambda launcher: (launcher.may_be_stale, -launcher.precedence)))


def label_of(source: str) -> str:
    """Return what a report shows for `source`; the name itself where a newer version named a launcher unknown here."""
    return next((launcher.label for launcher in all_launchers() if launcher.name == source), source)


def node_count_source(source: str) -> str:
    """Return the launcher with its variable for the number of nodes."""
    known = (launcher.node_count_source for launcher in all_launchers() if launcher.name == source)
    return next(known, "") or source


def binds_cpus(source: str) -> bool:
    """Return whether this launcher may give each rank CPUs of its own."""
    return any(launcher.binds_cpus for launcher in all_launchers() if launcher.name == source)


def is_place_variable(name: str) -> bool:
    """Return whether a launcher gives its processes their place in this variable. Facts keep it."""
    return _matches(name, *_patterns("variables"))


def is_set_by_a_launcher(name: str) -> bool:
    """Return whether a launcher sets this variable, so that its value may differ between nodes."""
    return is_place_variable(name) or name.startswith(_owned_prefixes())


def differs_by_rank(name: str) -> bool:
    """Return whether a launcher gives each rank of a node its own value of this variable."""
    return _matches(name, *_patterns("rank_variables"))


@cache
def commands() -> Mapping[tuple[str, ...], LineReader]:
    """Return the words that begin a launcher's command line, longest first, each with its reader."""
    return _longest_first(launcher.commands for launcher in all_launchers())


@cache
def modules() -> Mapping[tuple[str, ...], LineReader]:
    """Return the same for `python -m`."""
    return _longest_first(launcher.modules for launcher in all_launchers())


@cache
def remote_starters() -> frozenset[str]:
    """Return the programs that start processes on other nodes."""
    return frozenset(program for launcher in all_launchers() for program in launcher.remote_starters)


@cache
def _owned_prefixes() -> tuple[str, ...]:
    return tuple(prefix for launcher in all_launchers() for prefix in launcher.owned_prefixes)


@cache
def _patterns(field: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the exact names and the prefixes that all launchers have in `field`."""
    patterns = [pattern for launcher in all_launchers() for pattern in getattr(launcher, field)]
    prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    return frozenset(pattern for pattern in patterns if not pattern.endswith("*")), prefixes


def _matches(name: str, names: frozenset[str], prefixes: tuple[str, ...]) -> bool:
    return name in names or name.startswith(prefixes)


def _longest_first(
    tables: Iterable[Mapping[tuple[str, ...], LineReader]],
) -> Mapping[tuple[str, ...], LineReader]:
    begins = {begin: reader for table in tables for begin, reader in table.items()}
    return dict(sorted(begins.items(), key=lambda item: -len(item[0])))
