"""The GPUs of a snapshot one by one: their names in a sentence, a value of each, and what keeps it from being known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct

from ncclcheck.checks.hosts import not_reported, unread
from ncclcheck.checks.registry import Answer
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.finding import NotApplicable, NotKnown
from ncclcheck.model.formats.prose import joined, listed
from ncclcheck.model.hardware import Pci
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.gpus.job_gpus import gpus_without_nvml
from ncclcheck.nccl.topology import gpu_addresses

_NAMED = 4


class GpuOn(Struct, frozen=True):
    """One GPU of one node."""

    host: str
    gpu: Gpu

    @property
    def label(self) -> str:
        """`GPU 3 (0000:1b:00.0)`, without the address where it is not known."""
        return label(self.gpu)


def label(gpu: Gpu) -> str:
    """`GPU 3 (0000:1b:00.0)`."""
    return f"GPU {gpu.index}" if isinstance(gpu.pci, Missing) else f"GPU {gpu.index} ({gpu.pci})"


@once_per_subject
def listed_gpus(snapshot: Snapshot) -> tuple[GpuOn, ...]:
    """All GPUs that the drivers list, node by node."""
    return tuple([GpuOn(node.host, gpu) for node, gpus in snapshot.known("gpus") for gpu in gpus])


def values(gpus: Sequence[GpuOn], field: str) -> tuple[list[tuple[GpuOn, Any]], list[NotKnown]]:
    """Return the value of `field` of each GPU's state, and what could not be read.

    A GPU whose model does not have it is in neither: the driver calls it unsupported, for every GPU of that model.
    """
    read_of = attrgetter(field)
    read = [(gpu, read_of(gpu.gpu.state)) for gpu in gpus]
    return known_values(read), unknown_values(read, field.replace("_", " "))


def known_values(read: Iterable[tuple[GpuOn, Any]]) -> list[tuple[GpuOn, Any]]:
    """Return the values that are known."""
    return [(on, value) for on, value in read if not isinstance(value, Missing)]


def unknown_values(read: Iterable[tuple[GpuOn, Any]], what: str) -> list[NotKnown]:
    """Return what is not known of `what`; "unsupported" counts only if another GPU of the same model reports it."""
    unique = list(read)
    if not (unknown := [(on, value) for on, value in unique if isinstance(value, Missing)]):
        return []
    telling = {_model(on.gpu) for on, _ in known_values(unique)}
    missing: dict[tuple[str, str], list[str]] = {}
    for on, value in unknown:
        if value.missing != "unsupported" or _model(on.gpu) in telling:
            missing.setdefault((on.host, str(value)), []).append(f"GPU {on.gpu.index}")
    return [
        NotKnown(f"{what} of {together(labels)}: {why}", (host,)) for (host, why), labels in missing.items()
    ]


def _model(gpu: Gpu) -> str:
    return "" if isinstance(gpu.name, Missing) else gpu.name


def together(labels: Iterable[str]) -> str:
    """`GPU 1 and GPU 3`; of many the first ones and how many more."""
    unique = list(dict.fromkeys(labels))
    return listed(unique, _NAMED) if len(unique) > _NAMED else joined(unique)


def by_text(found: Iterable[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    """(host, text) pairs as texts with the hosts that share them: all texts of a host make one, joined by `; `."""
    of_host: dict[str, list[str]] = {}
    for host, text in found:
        of_host.setdefault(host, []).append(text)
    hosts: dict[str, list[str]] = {}
    for host, texts in of_host.items():
        hosts.setdefault("; ".join(dict.fromkeys(texts)), []).append(host)
    return [(text, tuple(names)) for text, names in hosts.items()]


def closing(snapshot: Snapshot, judged: bool, question: str) -> Iterator[Answer]:
    """How a check about GPUs ends: nodes without data, or no GPU that has the feature."""
    without = no_driver(snapshot)
    for known in unread(snapshot, "gpus"):
        if judged or not set(known.hosts) <= set(without):
            yield known
    for node in snapshot.nodes:
        is_without = not judged and node.host in without
        count = gpus_without_nvml(node.facts)
        if is_without and count:
            gpus = "1 GPU" if count == 1 else f"{count} GPUs"
            yield NotKnown(
                f"{gpus} on the PCI bus or seen by torch, and NVML does not report them", (node.host,)
            )
    yield from not_reported(snapshot)
    if not judged:
        yield NotApplicable(f"no GPU {question}")


def no_driver(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the nodes that have no library of NVIDIA's driver for NVML: no driver, or a container without it."""
    facts = ((node.host, node.facts.gpus) for node in snapshot.nodes)
    return tuple(host for host, gpus in facts if isinstance(gpus, Missing) and gpus.missing == "absent")


def has_no_gpu(snapshot: Snapshot) -> bool:
    """Return whether it is known of every node that it has no GPU: then Gloo carries the job.

    Of a node that stayed silent, or whose PCI bus is there and could not be read, it is not known.
    """
    without = set(no_driver(snapshot))
    if snapshot.viewpoint != "all" or snapshot.silent:
        return False
    return all(
        (node.host in without or node.facts.gpus == ())
        and not gpus_without_nvml(node.facts)
        and _has_none_on_the_bus(node.facts.pci)
        for node in snapshot.nodes
    )


def _has_none_on_the_bus(pci: Fact[Pci]) -> bool:
    return pci.missing == "absent" if isinstance(pci, Missing) else not gpu_addresses(pci)
