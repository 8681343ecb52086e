"""NC602 env-unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    OneAnswer,
    SettingFault,
    findings,
    shown,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.variables.variables import TABLE, lookup
from ncclcheck.nccl.variables.variables_folklore import RENAMED, did_you_mean, folklore, in_the_right_spelling

_PREFIXES = ("NCCL_", "TORCH_NCCL_", "GLOO_", "TORCHELASTIC_")
_NEWEST_TORCH: versions.Version = (2, 15, 99)  # the newest whose names are in the table
_FORKS = ("NCCL_CTRAN_", "NCCLX_", "NCCL_CVARS", "RCCL_", "MSCCL_", "NCCL_MSCCL")
_MOST_JUDGED = 64  # names of one environment; of more, what is meant is not looked for
_LISTED = 4
_SOURCE = "no such name in NCCL 2.4 to 2.32, torch 2.1 to 2.15, Gloo and the known plug-ins"


@check(
    "NC602",
    "env-unknown",
    "Every setting has a name that a program reads",
    needs=("environment", "nccl"),
    alike=("environment", "gpus", "interfaces", "nccl", "rdma", "software"),
    by_node=True,
    image=True,
)
def env_unknown(snapshot: Snapshot) -> Iterator[Answer]:
    """A program reads every variable that begins with NCCL_, TORCH_NCCL_, GLOO_ or TORCHELASTIC_ (or nearly so).

    ## Why it matters
    NCCL, torch and Gloo do not report unknown names, so a misspelt name, or one that never existed (NCCL_TIMEOUT),
    has no effect, and the user does not notice. Names are exact: no program reads `nccl_debug`, and in nccl.conf a
    leading blank or `export` is part of the name. Names of network plug-ins, forks, builds and images are known and
    not reported. If NCCL is newer than the table, or a fork of NCCL (RCCL, ncclx), only names that are certainly
    wrong are reported.

    ## How to fix
    Use the name that the finding proposes, or remove the variable.

    ## Source
    NCCL's sources from 2.4.2 to 2.30.7 and the libraries 2.31.2 and 2.32.3; torch's ProcessGroupNCCL.hpp and
    the binaries 2.1, 2.6, 2.13 and 2.15.
    """
    yield from findings(snapshot, _judge)


def _judge(place: EnvironmentPlace) -> Iterator[Judged]:
    doubtful = []
    unknown = [name for name in sorted(place.environment) if lookup(name) is None]
    ours = [name for name in unknown if name.startswith(_PREFIXES)]
    if rest := frozenset(ours[_MOST_JUDGED:]):
        yield _further(ours[_MOST_JUDGED:])
        unknown = [name for name in unknown if name not in rest]
    has_own_names = cache(lambda: _has_names_of_its_own(place))
    for name in unknown:
        advice = _advice(name) if name.startswith(_PREFIXES) else _spelt_otherwise(place, name)
        if advice is None and not name.startswith(_PREFIXES):
            continue  # not one of these names at all
        if advice is None and has_own_names():
            doubtful.append(name)
        else:
            yield _case(place, name, advice)
    if doubtful:
        yield OneAnswer(
            f"NCCL here is newer than the table of names, or a fork: {', '.join(doubtful)} may be read"
        )


def _further(names: list[str]) -> SettingFault:
    """Return what is said of very many unknown names: a user cannot have misspelt them one by one."""
    first = ", ".join(names[:_LISTED])
    return SettingFault(
        "warning",
        (names[0],),
        f"no known program reads {len(names)} more variables that begin like its settings ({first}, ...)",
        "they have no effect there, and make it hard to see which settings do",
        "a few settings",
        _SOURCE,
        Fix("find out which script sets so many variables, and remove them"),
    )


def _advice(name: str) -> tuple[str, str | None] | None:
    """What to use instead, and the name itself where it is one."""
    plain = name.strip()
    if plain != name and plain in TABLE:
        return f"the blank is part of the name; {plain} is meant", plain
    advice = folklore(name)
    if advice is not None:
        return advice, RENAMED.get(name)
    spelt = in_the_right_spelling(name)
    if spelt is not None:
        return f"did you mean {spelt}?", spelt
    meant = did_you_mean(name)
    return (f"did you mean {meant}?", meant) if meant is not None else None


def _spelt_otherwise(place: EnvironmentPlace, name: str) -> tuple[str, str | None] | None:
    """The advice for a name like nccl_debug; None where the right one is set too: then it is a variable of a script."""
    meant = in_the_right_spelling(name)
    if meant is None or meant in place.environment or TABLE[meant].owner == "builds and images":
        return None
    return f"did you mean {meant}?", meant


def _case(place: EnvironmentPlace, name: str, advice: tuple[str, str | None] | None) -> SettingFault:
    hint, meant = advice or ("no known name is similar", None)
    value = place.value(name)
    fix = Fix(f"remove it: {hint}" if meant is None else f"remove it; {hint}", _unset(name))
    if meant is not None and value is not None and meant not in place.environment:
        fix = Fix(f"rename it to {meant}", _unset(name), {meant: value.strip()})
    return SettingFault(
        "warning",
        (name,),
        f"no program reads {shown(name, place.environment[name])}",
        f"it has no effect; {hint}",
        meant or "a known name",
        _SOURCE,
        fix,
    )


def _unset(name: str) -> tuple[str, ...]:
    """The command that removes it; none for a name that no shell can hold, such as NCCL-DEBUG."""
    return (f"unset {name}",) if re.fullmatch(r"[A-Za-z_]\w*", name) else ()


def _has_names_of_its_own(place: EnvironmentPlace) -> bool:
    """True where names may be read that the table cannot know: a newer NCCL or torch, or a fork of NCCL."""
    if any(name.startswith(_FORKS) for name in place.environment):
        return True
    software = place.facts.software
    if (
        not isinstance(software, Missing)
        and not isinstance(software.torch, Missing)
        and "rocm" in software.torch
    ):
        return True
    if place.torch is not None and versions.parse(place.torch) > _NEWEST_TORCH:
        return True
    return place.nccl is not None and versions.parse(place.nccl) > versions.parse(versions.NEWEST)
