"""Whether NICs can reach GPU memory by themselves (GPUDirect RDMA), in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import GpuNic, RdmaPort
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number, strtoll
from ncclcheck.nccl.topology import PATHS

_DEFAULT = "PXB"
_NONE = ""  # nearer than any NIC can be
_OLD_LEVELS = (_NONE, "PIX", "PXB", "PHB", "SYS")  # the numbers 0 to 4, larger ones are SYS
_NEAR = ("LOC", "NVL", "NVB")
_AS_FAR_AS_PXB = ("PXB", "PXN")


def farthest(environment: Mapping[str, str], version: str) -> str:
    """Return the farthest of NCCL's classes at which it uses GPUDirect RDMA; empty where none is near enough.

    NCCL_NET_GDR_LEVEL, whose names count only in capitals; an unknown one is as unset. A GPU with a C2C link (Grace)
    is not distinguished; `describe` says where that link would matter. NCCL src/graph/paths.cc (ncclGetLevel,
    ncclTopoCheckGdr).
    """
    text = environment.get("NCCL_NET_GDR_LEVEL", "")
    rules = versions.parse(version)
    if text in PATHS:
        return text
    if text in _NEAR or (text == "C2C" and rules >= versions.C2C_LEVEL_SINCE):
        return _NONE
    if text in _AS_FAR_AS_PXB or (text == "P2C" and rules >= versions.P2C_LEVEL_SINCE):
        return "PXB"
    if text[:1] in set("0123456789") - {""}:
        level = strtoll(text).value
        return _OLD_LEVELS[min(level, len(_OLD_LEVELS) - 1)] if level is not None else "SYS"
    return _DEFAULT


def describe(
    ports: Sequence[RdmaPort],
    distances: Fact[Sequence[GpuNic]],
    peer_memory: Fact[tuple[str, ...]],
    nvidia_open: Fact[bool],
    environment: Mapping[str, str],
    version: str,
) -> str:
    """Whether NET/IB with those ports uses GPUDirect RDMA, through what, for which GPUs; and what is not known."""
    found = gpudirect_methods(peer_memory, nvidia_open, environment, version)
    possible = [words for is_possible, words in found if is_possible]
    unknown = [words for is_possible, words in found if is_possible is None]
    words = [words for _, words in found]
    if possible:
        return f"possible through {' or '.join(possible)}{_reach(ports, distances, environment, version)}"
    if unknown:
        return f"not known: {'; '.join(words)}"
    return f"not possible: {'; '.join(words)}"


def gpudirect_methods(
    peer_memory: Fact[tuple[str, ...]],
    nvidia_open: Fact[bool],
    environment: Mapping[str, str],
    version: str,
) -> tuple[tuple[bool | None, str], ...]:
    """Return how a NIC can reach GPU memory: whether each method works (None: not known), and why. One is enough."""
    return _peer_memory(peer_memory, version), _dmabuf(nvidia_open, environment, version)


def _peer_memory(found: Fact[tuple[str, ...]], version: str) -> tuple[bool | None, str]:
    looked_at = versions.at(versions.PEER_MEMORY, versions.parse(version))
    if isinstance(found, Missing):
        return None, f"whether a peer-memory module is loaded was not read ({found})"
    seen = [path for path in looked_at if path in found]
    if seen:
        return True, f"the peer-memory module ({seen[0]})"
    if found:
        return False, f"NCCL {version} does not look for the loaded peer-memory module ({', '.join(found)})"
    return False, "no peer-memory module is loaded (nvidia_peermem)"


def _dmabuf(nvidia_open: Fact[bool], environment: Mapping[str, str], version: str) -> tuple[bool | None, str]:
    value = environment.get("NCCL_DMABUF_ENABLE")
    if number(value, 1, version) == 0:
        return False, f"NCCL_DMABUF_ENABLE={value} switches DMA-BUF off"
    if isinstance(nvidia_open, Missing):
        return (
            None,
            f"whether the NVIDIA driver has open kernel modules, which DMA-BUF needs, was not read ({nvidia_open})",
        )
    if not nvidia_open:
        return False, "DMA-BUF needs the NVIDIA driver's open kernel modules"
    return True, "DMA-BUF (open kernel modules, CUDA driver 11.7 or newer, and a NIC driver that supports it)"


def _reach(
    ports: Sequence[RdmaPort], distances: Fact[Sequence[GpuNic]], environment: Mapping[str, str], version: str
) -> str:
    if isinstance(distances, Missing):
        return f"; how far the GPUs are from these NICs is not known: {distances.detail}"
    used = {port.device for port in ports}
    known = [distance for distance in distances if distance.nic in used]
    limit = farthest(environment, version)
    gpus = list(dict.fromkeys(nic.gpu for nic in known))
    if not gpus:
        return "; how far the GPUs are from these NICs is not known"
    if not limit:
        return f"; NCCL_NET_GDR_LEVEL={environment['NCCL_NET_GDR_LEVEL']} prevents every GPU from using it"
    allowed = PATHS[: PATHS.index(limit) + 1]
    near = [gpu for gpu in gpus if any(nic.gpu == gpu and nic.distance in allowed for nic in known)]
    far = [gpu for gpu in gpus if gpu not in near]
    if not far:
        return f"; every GPU has a NIC within {limit}"
    at_cpu = any(nic.gpu in far and nic.distance == "PHB" for nic in known)
    grace = ", which does not matter if it has a C2C link to its CPU (Grace)"
    return f"; no NIC within {limit} of {', '.join(far)}" + (
        grace if at_cpu and _counts_c2c(environment, version) else ""
    )


def _counts_c2c(environment: Mapping[str, str], version: str) -> bool:
    """NCCL_NET_GDR_C2C: a NIC at the CPU is near enough for a GPU with a C2C link to that CPU (ncclTopoCheckGdr)."""
    rules = versions.parse(version)
    default = int(rules >= versions.GDR_OVER_C2C_SINCE)
    return (
        rules >= versions.C2C_LEVEL_SINCE
        and number(environment.get("NCCL_NET_GDR_C2C"), default, version) != 0
    )
