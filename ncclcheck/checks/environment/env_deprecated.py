"""NC606 env-deprecated."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    OneAnswer,
    SettingFault,
    findings,
    shown,
    unset,
)
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Fix, Severity
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_types import Variable, is_gone, is_too_new, where_from


@check(
    "NC606",
    "env-deprecated",
    "This version reads every setting",
    needs=("environment", "nccl"),
    alike=("environment", "gpus", "interfaces", "nccl", "rdma", "software"),
    by_node=True,
    image=True,
)
def env_deprecated(snapshot: Snapshot) -> Iterator[Answer]:
    """The NCCL or torch of the node reads every variable, under its current name.

    ## Why it matters
    A removed name (NCCL_TREE_THRESHOLD, NCCL_WORK_FIFO_DEPTH) has no effect, and no program reports it: a warning. A
    name that this version does not support yet has no effect either, which is harmless in an environment for several
    versions. An old name that is still read may be removed later. Both are information.

    ## How to fix
    Use the successor that the finding names, or remove the variable.

    ## Source
    NCCL's sources from 2.4.2 to 2.30.7 and the libraries 2.31.2 and 2.32.3; torch's ProcessGroupNCCL.hpp.
    """
    yield from findings(snapshot, _judge)


def _judge(place: EnvironmentPlace) -> Iterator[Judged]:
    for name in sorted(place.environment):
        variable = TABLE.get(name)
        if variable is None or not (variable.since or variable.until or variable.obsolete_since):
            continue
        verdicts = {_verdict(variable, version) for version in _versions(place, variable)}
        if len(verdicts) == 1 and (verdict := verdicts.pop()) is not None:
            yield _case(place, variable, *verdict)
        elif len(verdicts) > 1 and variable.until:
            owner = variable.owner
            yield OneAnswer(f"whether {name} is read depends on the version of {owner}, which is not known")


def _versions(place: EnvironmentPlace, variable: Variable) -> tuple[str, ...]:
    if variable.owner == "NCCL":
        return place.versions()
    if variable.owner == "torch":
        return (place.torch,) if place.torch is not None else ("2.0.0", "2.15.0")
    return (versions.NEWEST,)


def _verdict(variable: Variable, version: str) -> tuple[Severity, str] | None:
    if is_gone(variable, version):
        return (
            "warning",
            f"{variable.owner} no longer reads it (last in {variable.until.removesuffix('.99')}), "
            "so it has no effect",
        )
    if is_too_new(variable, version):
        return "info", f"{variable.owner} reads it from version {variable.since}, so it has no effect here"
    since = variable.obsolete_since
    if since and versions.parse(version) >= versions.parse(since):
        return "info", f"an old name since {variable.owner} {since}, but still read"
    return None


def _case(place: EnvironmentPlace, variable: Variable, severity: Severity, why: str) -> SettingFault:
    name, successor, value = variable.name, variable.successor, place.value(variable.name)
    here = place.torch if variable.owner == "torch" else place.nccl
    fix = unset(name)
    if successor and value is not None and variable.obsolete_since and _takes_the_same(variable):
        fix = Fix(f"rename it to {successor}", (f"unset {name}",), {successor: value})
    elif successor:
        fix = unset(name, text=f"remove it; {successor} replaces it")
    return SettingFault(
        severity,
        (name,),
        f"{shown(name, place.environment[name])} with {variable.owner} {here or 'of any version'}",
        f"{why}{f'; {successor} replaces it' if successor else ''}",
        successor or f"{name} not set",
        where_from(variable),
        fix,
    )


def _takes_the_same(variable: Variable) -> bool:
    successor = TABLE[variable.successor]
    return successor.kind == variable.kind
