"""How many GPUs of a node a process of the job gets: what torch sees, not what NVML lists."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Gpu, NodeFacts
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number
from ncclcheck.nccl.topology import gpu_addresses

SHARES_GPUS = "NCCL_MULTI_RANK_GPU_ENABLE"
_VARIABLE = "CUDA_VISIBLE_DEVICES"


def job_gpus(facts: NodeFacts) -> Fact[int]:
    """Return how many GPUs CUDA gives to a process of the job on this node; 0 where it is known that there is none.

    NVML lists all GPUs that the container has: without CUDA_VISIBLE_DEVICES, and a GPU in MIG mode as a whole. Where
    torch did not answer, they are counted as torch does (torch/cuda/__init__.py 2.13, `_parse_visible_devices`).
    Missing where GPUs are listed and torch sees none though nothing hides them: CUDA does not start. Without NVML's
    library (a container that was given CUDA's alone) torch's count holds.
    """
    gpus, environment = facts.gpus, facts.environment
    if isinstance(gpus, Missing):
        return _without_nvml(facts) if gpus.missing == "absent" else gpus
    visible = None if isinstance(environment, Missing) else environment.get(_VARIABLE)
    counted = _torch_count(facts)
    if not isinstance(counted, Missing):
        if counted == 0 and gpus and (visible is None or _named_first(visible, gpus)):
            return Missing("error", f"torch sees none of {len(gpus)} GPUs, and nothing hides them")
        named = 0 if visible is None else _named_first(visible, gpus)
        return min(counted, named) if named else counted
    if any(gpu.state.mig is True for gpu in gpus):
        return (
            1  # a process gets one MIG instance, whatever there are (NVIDIA MIG User Guide, CUDA visibility)
        )
    return len(gpus) if visible is None else _named_first(visible, gpus)


def gpus_without_nvml(facts: NodeFacts) -> int:
    """Return how many GPUs the PCI bus or torch show of a node that lacks NVML's library; 0 where NVML is there."""
    if not isinstance(facts.gpus, Missing) or facts.gpus.missing != "absent":
        return 0
    on_bus = 0 if isinstance(facts.pci, Missing) else len(gpu_addresses(facts.pci))
    count = _torch_count(facts)
    return on_bus if isinstance(count, Missing) else max(on_bus, count)


def sees_none(facts: NodeFacts) -> bool:
    """Return whether torch answered that there is no GPU, or has no CUDA to find one with."""
    count = _torch_count(facts)
    return count.missing == "unsupported" if isinstance(count, Missing) else count == 0


def _torch_count(facts: NodeFacts) -> Fact[int]:
    return facts.torch_gpus if isinstance(facts.torch_gpus, Missing) else facts.torch_gpus.count


def _without_nvml(facts: NodeFacts) -> Fact[int]:
    """Return what torch counts; Missing where the PCI bus has GPUs, nothing hides them, and torch reports none."""
    count = _torch_count(facts)
    if not isinstance(count, Missing) and count:
        return count
    hides = not isinstance(facts.environment, Missing) and _VARIABLE in facts.environment
    if hides and count == 0:
        return 0
    there = gpus_without_nvml(facts)
    if there:
        why = f"torch did not count them ({count})" if isinstance(count, Missing) else "torch sees none"
        return Missing("error", f"the PCI bus has {there}, libnvidia-ml.so.1 is not there, and {why}")
    if isinstance(count, Missing) and count.missing not in ("absent", "unsupported"):
        return count  # torch was asked because there are device files of GPUs
    return 0


def exclusive_gpus(facts: NodeFacts) -> tuple[int, ...]:
    """Return the GPUs that take no second process: in compute mode EXCLUSIVE_PROCESS or PROHIBITED."""
    gpus = () if isinstance(facts.gpus, Missing) else facts.gpus
    modes = ((gpu.index, gpu.state.compute_mode) for gpu in gpus)
    return tuple(index for index, mode in modes if not isinstance(mode, Missing) and mode != "default")


def shares_gpus(facts: NodeFacts) -> bool:
    """Return whether NCCL takes several ranks on one GPU of this node: its switch is set, and it knows the switch.

    NCCL that is not known counts as one that does: whoever sets an experimental switch has chosen NCCL for it.
    """
    environment, software = facts.environment, facts.software
    text = None if isinstance(environment, Missing) else environment.get(SHARES_GPUS)
    nccl = software if isinstance(software, Missing) else software.nccl
    if isinstance(nccl, Missing) and not isinstance(software, Missing):
        nccl = software.torch_nccl
    if isinstance(nccl, Missing) or not versions.is_version(nccl):
        return number(text, 0) != 0
    return number(text, 0, nccl) != 0 and versions.parse(nccl) >= versions.SHARED_GPUS_SINCE


def _named_first(visible: str, gpus: Sequence[Gpu]) -> int:
    """Return how many GPUs the variable names; CUDA stops reading at the first word that names none."""
    found: set[int] = set()
    for word in visible.split(","):
        index = _index(word.strip(), gpus)
        if index is None:
            break
        if index in found:
            return 0  # a GPU that is named twice: CUDA gives none
        found.add(index)
    return len(found)


def _index(word: str, gpus: Sequence[Gpu]) -> int | None:
    if word.isascii() and word.isdigit():
        return int(word) if int(word) < len(gpus) else None
    if word.startswith("MIG-"):
        return -1
    if not word.startswith("GPU-"):
        return None
    named = [gpu.index for gpu in gpus if isinstance(gpu.uuid, str) and gpu.uuid.startswith(word)]
    return named[0] if len(named) == 1 else None
