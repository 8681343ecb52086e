"""NC501 version-differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.majority import HostComparison, compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Software
from ncclcheck.model.finding import Finding, Fix, NotKnown, Severity
from ncclcheck.model.snapshot import Snapshot

NOT_THERE = "none"


class Quantity(Struct, frozen=True):
    """One version to compare: how to read it, its source, how bad a difference is."""

    name: str
    read: Callable[[Software], Fact[str]]
    source: str
    severity: Severity
    why: str
    optional: bool = False  # a node may be without it, as long as all are


_QUANTITIES = (
    Quantity("torch", lambda software: software.torch, "torch/version.py", "warning", "ranks may run different code"),
    Quantity(
        "CUDA of torch", lambda software: software.torch_cuda, "torch/version.py", "warning",
        "kernels and libraries differ", optional=True,
    ),
    Quantity(
        "NVIDIA driver", lambda software: software.driver, "/proc/driver/nvidia/version", "warning",
        "features and speed of GPUs and NVLink may differ", optional=True,
    ),
    Quantity(
        "Python", lambda software: ".".join(software.python.split(".")[:2]), "platform.python_version()", "warning",
        "a different interpreter loads different packages",
    ),
    Quantity("ncclcheck", lambda software: software.ncclcheck, "ncclcheck itself", "warning", ("nodes run "
        "different checks")),
    Quantity(
        "architecture", lambda software: software.machine, "uname -m", "warning", "results of floating point may differ"
    ),
    Quantity("kernel", lambda software: software.kernel, "uname -r", "info", "for information"),
    Quantity("operating system", lambda software: software.os, "/etc/os-release", "info", "for information"),
)  # fmt: skip


@check(
    "NC501", "version-differs", "All nodes run the same versions", needs=("software",), nodes=2, joined=True
)
def version_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """torch, its CUDA, the NVIDIA driver, Python and ncclcheck have the same version on every node.

    ## Why it matters
    One node with another image is the classic cause of a job that hangs or gives wrong numbers on that node only.
    Different minor versions of torch send each other incompatible messages.

    ## How to fix
    Use one image or one environment on all nodes. Kernel and operating system may differ; that is information.

    ## Source
    The versions as each part says them itself, without loading it; where, is in the evidence.
    """
    for quantity in _QUANTITIES:
        known: list[tuple[str, str]] = []
        for node, software in snapshot.known("software"):
            value = quantity.read(software)
            if not isinstance(value, Missing):
                known.append((node.host, value))
            elif value.missing == "absent":
                known.append((node.host, NOT_THERE))
            else:
                yield NotKnown(f"{quantity.name}: {value}", (node.host,))
        if quantity.name == "ncclcheck":  # two states of one version differ as well
            known = [(host, snapshot.builds.get(host, version)) for host, version in known]
        comparison = compare(known)
        if comparison.differs:
            yield _finding(quantity, comparison)
        elif not quantity.optional and known and known[0][1] == NOT_THERE and quantity.severity != "info":
            yield NotKnown(f"{quantity.name} is on no node")
    yield from not_reported(snapshot)


def _finding(quantity: Quantity, comparison: HostComparison[str]) -> Finding:
    severity = quantity.severity
    if quantity.name == "torch" and len({_minor(group.value) for group in comparison.groups}) > 1:
        severity = "error"
    return Finding(
        severity,
        f"{quantity.name} differs: {sentence(comparison)}: {quantity.why}",
        comparison.odd_hosts,
        evidence(comparison, f"version of {quantity.name}", quantity.source),
        (Fix(f"install the same {quantity.name} on all nodes, best by using one image"),)
        if severity != "info"
        else (),
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
