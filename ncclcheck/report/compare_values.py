"""Versions, settings and choices that changed from one report to another, and on which hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report


class ValueChange(Struct, frozen=True):
    """A version, a setting or a choice that is another one, and on which hosts; none named: of the whole run."""

    what: str
    before: str
    after: str
    hosts: tuple[str, ...] = ()


def value_changes(old: Report, new: Report) -> Iterator[ValueChange]:
    """Yield the values that changed, on hosts in both reports and in the advice."""
    if old.tool.version != new.tool.version:
        yield ValueChange("ncclcheck", old.tool.version, new.tool.version)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for read in (_versions, _choices, _environment):
        before, after = read(old), read(new)
        for host in before.keys() & after.keys():
            earlier, later = before[host], after[host]
            for what in dict.fromkeys([*earlier, *later]):
                pair = (earlier.get(what, "not set"), later.get(what, "not set"))
                if pair[0] != pair[1]:
                    groups.setdefault((what, *pair), []).append(host)
    for (what, was, now), hosts in sorted(groups.items()):
        yield ValueChange(what, was, now, tuple(sorted(hosts)))
    advised = [
        {setting.name: "unset it" if setting.value is None else setting.value for setting in side.advice.env}
        for side in (old, new)
    ]
    for name in dict.fromkeys([*advised[0], *advised[1]]):
        was, now = advised[0].get(name, "nothing"), advised[1].get(name, "nothing")
        if was != now:
            yield ValueChange(f"advised {name}", was, now)


def _versions(report: Report) -> Mapping[str, Mapping[str, str]]:
    """Of each host the versions of its software; one that could not be read is a question mark."""
    of_host = {}
    for node in report.nodes:
        if not node.facts or isinstance(node.facts.software, Missing):
            continue
        software = node.facts.software
        read = {
            "python": software.python,
            "torch": software.torch,
            "torch's CUDA": software.torch_cuda,
            "NCCL": software.nccl,
            "driver": software.driver,
            "kernel": software.kernel,
            "OS": software.os,
        }
        of_host[node.host] = {
            what: "not known" if isinstance(value, Missing) else value for what, value in read.items()
        }
    return of_host


def _choices(report: Report) -> Mapping[str, Mapping[str, str]]:
    return {
        entry.host: {
            "NCCL's interface": entry.interface or "none",
            "NCCL's network": entry.network or "not known",
        }
        for entry in report.nccl
    }


def _environment(report: Report) -> Mapping[str, Mapping[str, str]]:
    return {
        node.host: node.facts.environment
        for node in report.nodes
        if node.facts and not isinstance(node.facts.environment, Missing)
    }
