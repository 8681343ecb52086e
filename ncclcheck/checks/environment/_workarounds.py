"""The table of workarounds: settings that help to find a fault, what each costs afterwards, and where it does."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from ncclcheck.checks.environment._settings import EnvironmentPlace
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Severity
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number

_GID_BY_ITSELF_SINCE: versions.Version = (2, 21, 0)
_LOCAL_ONLY = 1
# Hopper and later have NVLink SHARP, where an NVSwitch joins several of them.
_WITH_NVLS = (
    "H100",
    "H200",
    "H800",
    "H20",
    "GH200",
    "B100",
    "B200",
    "B300",
    "GB200",
    "GB300",
    "R100",
    "VR200",
)
_WITHOUT_P2P = re.compile(r"GeForce RTX [45]0\d\d")


class Workaround(Struct, frozen=True):
    """A setting that helps to find a fault and costs something afterwards. `applies` looks at its value and place."""

    name: str
    applies: Callable[[EnvironmentPlace, str], bool]
    cost: str
    severity: Severity = "warning"
    text: str = "remove it unless you know why it is there"
    instead: str = ""  # the value to set in its place


def _number(place: EnvironmentPlace, value: str, default: int) -> int:
    return number(value, default, place.nccl or versions.NEWEST)


def _is(*numbers: int) -> Callable[[EnvironmentPlace, str], bool]:
    return lambda place, value: _number(place, value, -1) in numbers


def _is_set(_: EnvironmentPlace, value: str) -> bool:
    return bool(value)


def _among_several(*numbers: int) -> Callable[[EnvironmentPlace, str], bool]:
    """Return True if the value is one of the numbers, and the node has several GPUs, or an unknown number."""
    return lambda place, value: _is(*numbers)(place, value) and _gpus(place) != _LOCAL_ONLY


def _gpus(place: EnvironmentPlace) -> int | None:
    gpus = place.facts.gpus
    return None if isinstance(gpus, Missing) or not gpus else len(gpus)


def _p2p_off(place: EnvironmentPlace, value: str) -> bool:
    return _among_several(1)(place, value) and not _has_cards_without_p2p(place)


def _has_cards_without_p2p(place: EnvironmentPlace) -> bool:
    """GeForce cards from the RTX 40 series on have neither NVLink nor peer to peer over PCIe in NVIDIA's driver."""
    gpus = place.facts.gpus
    if isinstance(gpus, Missing) or not gpus:
        return False
    return all(not isinstance(gpu.name, Missing) and _WITHOUT_P2P.search(gpu.name) for gpu in gpus)


def _nvls_off(place: EnvironmentPlace, value: str) -> bool:
    gpus = place.facts.gpus
    if not _among_several(0)(place, value):
        return False
    if isinstance(gpus, Missing) or not gpus:
        return True
    names = [gpu.name for gpu in gpus if not isinstance(gpu.name, Missing)]
    return not names or any(known in name for name in names for known in _WITH_NVLS)


def _gid_forced(place: EnvironmentPlace, value: str) -> bool:
    known = all(versions.parse(version) >= _GID_BY_ITSELF_SINCE for version in place.versions())
    return known and _number(place, value, -1) >= 0


def _level_is_off(place: EnvironmentPlace, value: str) -> bool:
    return value == "LOC" or (value[:1].isdigit() and _number(place, value, 1) == 0)


def _verbose(_: EnvironmentPlace, value: str) -> bool:
    return value.strip().upper() in {"INFO", "TRACE"}


def _word(word: str) -> Callable[[EnvironmentPlace, str], bool]:
    return lambda _, value: value.strip().upper() == word


def _torch_on(_: EnvironmentPlace, value: str) -> bool:
    return value.lower() in {"1", "y", "yes", "t", "true"}


def _zero(place: EnvironmentPlace, value: str) -> bool:
    return _number(place, value, -1) == 0


def _positive(place: EnvironmentPlace, value: str) -> bool:
    return _number(place, value, 0) > 0


def _non_blocking_unasked(place: EnvironmentPlace, value: str) -> bool:
    is_asked = (place.value("TORCH_NCCL_USE_COMM_NONBLOCKING") or "").lower() in {
        "1",
        "y",
        "yes",
        "t",
        "true",
    }
    return _zero(place, value) and place.torch is not None and not is_asked


WORKAROUNDS: tuple[Workaround, ...] = (
    Workaround(
        "NCCL_P2P_DISABLE",
        _p2p_off,
        "GPUs of one node communicate through host memory instead of NVLink or PCIe, several times slower",
    ),
    Workaround(
        "NCCL_P2P_LEVEL",
        _level_is_off,
        "LOC disables peer-to-peer: GPUs of one node communicate through host memory, several times slower",
    ),
    Workaround(
        "NCCL_SHM_DISABLE",
        _among_several(1),
        "GPUs of one node without peer-to-peer communicate through the network card instead of host memory",
    ),
    Workaround(
        "NCCL_NVLS_ENABLE",
        _nvls_off,
        "NVLink SHARP is off, which reduces in the NVSwitch from Hopper on; frameworks turn it off "
        "to save memory",
        "info",
    ),
    Workaround(
        "NCCL_CUMEM_ENABLE",
        _zero,
        "without cuMem, NVLink SHARP, multi-node NVLink and registered user buffers are not available",
        "info",
    ),
    Workaround(
        "NCCL_PXN_DISABLE",
        _among_several(1),
        "GPUs no longer send through the GPU with the nearest network card, so all-to-all crosses rails",
    ),
    Workaround(
        "NCCL_NET_GDR_LEVEL",
        _level_is_off,
        "GPUDirect RDMA is off: all network data is copied through host memory",
    ),
    Workaround(
        "NCCL_DMABUF_ENABLE", _zero, "without DMA-BUF, GPUDirect RDMA needs the nvidia-peermem module", "info"
    ),
    Workaround("NCCL_ALGO", _is_set, "NCCL no longer chooses the algorithm by size and topology", "info"),
    Workaround(
        "NCCL_PROTO",
        _is_set,
        "NCCL no longer chooses the protocol by size; LL128 corrupts data on hardware that does not support it",
        "info",
    ),
    Workaround("NCCL_NTHREADS", _positive, "NCCL no longer chooses the threads per block", "info"),
    Workaround("NCCL_BUFFSIZE", _positive, "NCCL no longer chooses the size of its buffers", "info"),
    Workaround(
        "NCCL_MIN_NCHANNELS",
        _positive,
        "NCCL no longer chooses the channels; many starve computation",
        "info",
    ),
    Workaround(
        "NCCL_MAX_NCHANNELS", _positive, "NCCL no longer chooses the channels; few limit bandwidth", "info"
    ),
    Workaround(
        "NCCL_MIN_CTAS", _positive, "NCCL no longer chooses the channels; many starve computation", "info"
    ),
    Workaround(
        "NCCL_MAX_CTAS", _positive, "NCCL no longer chooses the channels; few limit bandwidth", "info"
    ),
    Workaround("NCCL_LAUNCH_MODE", _word("GROUP"), "an obsolete mode, for debugging only", "info"),
    Workaround("NCCL_CHECK_POINTERS", _is(1), "every call checks its pointers, which costs latency", "info"),
    Workaround("NCCL_CHECK_MODE", _is_set, "every call is checked, which costs latency", "info"),
    Workaround("NCCL_COMM_BLOCKING", _is(1), "torch chooses by itself whether calls block", "info"),
    Workaround(
        "NCCL_COMM_BLOCKING",
        _non_blocking_unasked,
        "calls return before they are done, which torch does not expect without TORCH_NCCL_USE_COMM_NONBLOCKING=1",
        "warning",
        "remove it: torch chooses by itself whether calls block",
    ),
    Workaround(
        "NCCL_IB_GID_INDEX",
        _gid_forced,
        "NCCL 2.21 and newer find the GID themselves; a forced index is wrong where the order of "
        "addresses differs",
        "info",
    ),
    Workaround(
        "NCCL_IB_TIMEOUT", _is(0), "the card waits forever for a lost packet, so a broken link hangs the job"
    ),
    Workaround("NCCL_IGNORE_DISABLED_P2P", _is(1), "it hides a fault of NVLink or the driver", "info"),
    Workaround(
        "NCCL_COMM_ID",
        _is_set,
        "torch makes its own, and an address of an earlier job breaks this one",
        "warning",
        "remove it: torch does not need it",
    ),
    Workaround(
        "NCCL_DEBUG",
        _verbose,
        "every rank writes many log lines; WARN is enough for production",
        "info",
        "set it to WARN",
        "WARN",
    ),
    Workaround(
        "CUDA_LAUNCH_BLOCKING",
        _is(1),
        "the host waits for every kernel, so nothing overlaps with communication",
        "warning",
        "remove it: it is only for finding the kernel that fails",
    ),
    Workaround(
        "TORCH_NCCL_BLOCKING_WAIT",
        _torch_on,
        "wait() blocks the host until the collective is done, so nothing overlaps, and the watchdog "
        "does not end hangs",
    ),
    Workaround(
        "TORCH_DISTRIBUTED_DEBUG",
        _word("DETAIL"),
        "torch checks all ranks over Gloo before every collective",
        "warning",
        "remove it, or set INFO",
    ),
    Workaround(
        "NCCL_BLOCKING_WAIT",  # its old name, still read
        _torch_on,
        "wait() blocks the host until the collective is done, so nothing overlaps, and the watchdog "
        "does not end hangs",
    ),
    Workaround("TORCH_NCCL_DESYNC_DEBUG", _torch_on, "every collective is written to the store", "info"),
    Workaround(
        "TORCH_NCCL_NAN_CHECK", _torch_on, "every buffer is read an extra time before it is sent", "info"
    ),
)
