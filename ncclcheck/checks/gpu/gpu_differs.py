"""NC408 gpu-differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ncclcheck.checks.gpus import GpuOn, by_text, closing, known_values, listed_gpus, together, unknown_values
from ncclcheck.checks.hosts import named
from ncclcheck.checks.majority import TIE, compare, evidence, sentence
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown, Severity
from ncclcheck.model.snapshot import Snapshot


class _Quality(Struct, frozen=True):
    """Something that GPUs of a job should have in common."""

    name: str
    read: Callable[[Gpu], Fact[str]]
    severity: Severity
    why: str


def _mode(field: str) -> Callable[[Gpu], Fact[str]]:
    def read(gpu: Gpu) -> Fact[str]:
        value = getattr(gpu.state, field)
        return value if isinstance(value, Missing) else "on" if value else "off"

    return read


def _compute_mode(gpu: Gpu) -> Fact[str]:
    return gpu.state.compute_mode


def _model(gpu: Gpu) -> Fact[str]:
    return gpu.name


def _memory(gpu: Gpu) -> Fact[str]:
    size = gpu.memory_bytes
    return size if isinstance(size, Missing) else f"{round(size / (1 << 30))} GiB"


_QUALITIES = (
    _Quality("model of the GPUs", _model, "warning", "all ranks wait for the slowest model"),
    _Quality("memory of the GPUs", _memory, "warning", "a job that fits on one GPU does not fit on the other"),
    _Quality("MIG mode", _mode("mig"), "warning", ("a GPU in MIG mode is only a part of a GPU, and "
        "NCCL does not use NVLink there")),
    _Quality("ECC mode", _mode("ecc"), "warning", "memory and speed differ, and errors go unnoticed where it is off"),
    _Quality("compute mode", _compute_mode, "warning", "a GPU that takes one process only refuses a second one"),
    _Quality("persistence mode", _mode("persistence"), "info", "the first CUDA call is slow where it is off"),
)  # fmt: skip


@check(
    "NC408",
    "gpu-differs",
    "All nodes have the same GPUs in the same modes",
    alike=("gpus", "pci", "torch_gpus"),
)
def gpu_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """All nodes have GPUs of the same model and memory size, with the same MIG, ECC and persistence modes.

    The number of GPUs is checked by gpu-count.

    ## Why it matters
    A synchronous job runs at the speed of its slowest GPU, and its memory must fit the smallest.

    ## How to fix
    Ask the scheduler for nodes of one kind. As an administrator, set the same modes with `nvidia-smi`; this check
    changes nothing.

    ## Source
    NVML: names, memory and modes of the GPUs. A GPU that does not know a mode is not compared in it.
    """
    judged = False
    for quality in _QUALITIES:
        of_host: dict[str, dict[str, int]] = {}
        known: list[tuple[GpuOn, str]] = []
        read = [(gpu, quality.read(gpu.gpu)) for gpu in listed_gpus(snapshot)]
        for on, value in known_values(read):
            counts = of_host.setdefault(on.host, {})
            counts[value] = counts.get(value, 0) + 1
            known.append((on, value))
        if quality.read is _model:
            for on, value in read:
                if isinstance(value, Missing):
                    yield NotKnown(f"{quality.name}: GPU {on.gpu.index}: {value}", (on.host,))
        else:
            yield from unknown_values(read, quality.name)
        judged = judged or bool(of_host)
        yield from _compared(quality, of_host, _odd_gpus(known))
    yield from closing(snapshot, judged, "is listed")


def _odd_gpus(known: Sequence[tuple[GpuOn, str]]) -> dict[str, list[str]]:
    """Return the GPUs that differ from others of their own node, by host: those without the most frequent value."""
    values = Counter(value for _, value in known)
    if len(values) < 2:  # noqa: PLR2004 (one value is no difference)
        return {}
    usual = values.most_common(1)[0][0]
    kinds: dict[str, set[str]] = {}
    for on, value in known:
        kinds.setdefault(on.host, set()).add(value)
    odd: dict[str, list[str]] = {}
    for on, value in known:
        if value != usual and len(kinds[on.host]) > 1:
            odd.setdefault(on.host, []).append(f"{on.label} has {value}")
    return odd


def _compared(
    quality: _Quality, of_host: dict[str, dict[str, int]], odd: dict[str, list[str]]
) -> Iterator[Answer]:
    """The kinds on each node, not how many of each; a node of several kinds says so with numbers."""
    comparison = compare((host, _kinds(counts)) for host, counts in of_host.items())
    mixed = any(len(counts) > 1 for counts in of_host.values())
    if not comparison.differs and not mixed:
        return
    hosts = comparison.odd_hosts if comparison.differs else tuple(of_host)
    text = sentence(comparison) if comparison.differs else f"{comparison.groups[0].value} on every node"
    if comparison.tie and _are_the_rest_alike(of_host, odd):
        hosts, text = tuple(odd), text.removesuffix(TIE)
    yield Finding(
        quality.severity,
        f"{quality.name} differs: {text}{_on_hosts(odd)}: {quality.why}",
        hosts,
        (
            *evidence(comparison, quality.name, "NVML"),
            *(
                Evidence((host,), quality.name, together(gpus), "the same on every GPU", "NVML")
                for host, gpus in odd.items()
            ),
        ),
        (Fix("use nodes with the same GPUs in the same modes", ("nvidia-smi -L", "nvidia-smi -q")),),
    )


def _are_the_rest_alike(of_host: dict[str, dict[str, int]], odd: dict[str, list[str]]) -> bool:
    """Return whether the nodes without a GPU that differs all have the usual kind: then these GPUs are no tie."""
    total: Counter[str] = Counter()
    for counts in of_host.values():
        total.update(counts)
    rest = {_kinds(counts) for host, counts in of_host.items() if host not in odd}
    return bool(odd) and rest == {total.most_common(1)[0][0]}


def _on_hosts(odd: dict[str, list[str]]) -> str:
    """` (GPU 2 (0000:1b:00.0) has on, on node03)`; empty where no node has several kinds."""
    texts = by_text((host, together(gpus)) for host, gpus in odd.items())
    return f" ({'; '.join(f'{text}, on {named(hosts)}' for text, hosts in texts)})" if texts else ""


def _kinds(counts: dict[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return " and ".join(f"{number} x {kind}" for kind, number in sorted(counts.items()))
