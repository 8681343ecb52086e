"""NC604 env-harmful."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from ncclcheck.checks.environment.settings import Case, Judged, Place, findings, shown, unset
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Fix, Severity
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number
from ncclcheck.nccl.variables import TABLE
from ncclcheck.nccl.variables_types import is_read, where_from
from ncclcheck.nccl.variables_values import misread

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
Certainty: TypeAlias = Literal["yes", "no", "not known"]


class Workaround(Struct, frozen=True):
    """A setting that helps to find a fault and costs something afterwards. `applies` looks at its value and place."""

    name: str
    applies: Callable[[Place, str], bool]
    cost: str
    severity: Severity = "warning"
    text: str = "remove it unless you know why it is there"
    instead: str = ""  # the value to set in its place


@check("NC604", "env-harmful", "No workaround was left over that costs speed", needs=("environment", "nccl"))
def env_harmful(snapshot: Snapshot) -> Iterator[Answer]:
    """No setting is in force that turns a fast path off, or that is only meant for the search of a fault.

    ## Why it matters
    Advice from old threads turns off NVLink, RDMA or NVLink SHARP to get round a fault, and stays in scripts and
    images for years. NCCL's user guide says of its debugging variables that they must not be kept. A setting is only
    reported where its value has that effect in this version, and where there is something to lose: NCCL_IB_DISABLE=1
    only with RDMA devices, NCCL_P2P_DISABLE=1 only with several GPUs. What merely prints more, or is forced where
    NCCL would find it by itself, is told for information.

    ## How to fix
    Remove it, then measure: `ncclcheck bench` before and after. Keep it where the fault is still there.

    ## Source
    NCCL's user guide, environment variables; src/graph/paths.cc, src/transport, src/graph/tuning.cc.
    """
    yield from findings(snapshot, _judge)


def _judge(place: Place) -> Iterator[Judged]:
    for one in WORKAROUNDS:
        value = place.value(one.name)
        if value is None or not _is_in_force(place, one.name, value) or not one.applies(place, value):
            continue
        yield _case(one, value, one.cost)
    yield from _network_turned_off(place)


def _is_in_force(place: Place, name: str, value: str) -> bool:
    """True if every version in question reads the variable, and reads the value as it is written."""
    variable = TABLE[name]
    if variable.owner != "NCCL":
        return True
    for version in place.versions():
        wrong = misread(variable, value, version, place.environment) if is_read(variable, version) else None
        if not is_read(variable, version) or (wrong is not None and wrong.weight != "info"):
            return False
    return True


def _case(one: Workaround, value: str, cost: str) -> Case:
    return Case(
        one.severity,
        (one.name,),
        shown(one.name, value),
        cost,
        f"{one.name}={one.instead}" if one.instead else f"{one.name} not set",
        where_from(TABLE[one.name]),
        Fix(one.text, (), {one.name: one.instead}) if one.instead else unset(one.name, text=one.text),
    )


# --- conditions -------------------------------------------------------------------------------------------------------


def _number(place: Place, value: str, default: int) -> int:
    return number(value, default, place.nccl or versions.NEWEST)


def _is(*numbers: int) -> Callable[[Place, str], bool]:
    return lambda place, value: _number(place, value, -1) in numbers


def _is_set(_: Place, value: str) -> bool:
    return bool(value)


def _among_several(*numbers: int) -> Callable[[Place, str], bool]:
    """The value is one of the numbers, and the node has several GPUs, or nobody knows how many."""
    return lambda place, value: _is(*numbers)(place, value) and _gpus(place) != _LOCAL_ONLY


def _gpus(place: Place) -> int | None:
    gpus = place.facts.gpus
    return None if isinstance(gpus, Missing) or not gpus else len(gpus)


def _nvls_off(place: Place, value: str) -> bool:
    gpus = place.facts.gpus
    if not _among_several(0)(place, value):
        return False
    if isinstance(gpus, Missing) or not gpus:
        return True
    names = [gpu.name for gpu in gpus if not isinstance(gpu.name, Missing)]
    return not names or any(known in name for name in names for known in _WITH_NVLS)


def _gid_forced(place: Place, value: str) -> bool:
    known = all(versions.parse(version) >= _GID_BY_ITSELF_SINCE for version in place.versions())
    return known and _number(place, value, -1) >= 0


def _level_is_off(place: Place, value: str) -> bool:
    return value == "LOC" or (value[:1].isdigit() and _number(place, value, 1) == 0)


def _verbose(_: Place, value: str) -> bool:
    return value.strip().upper() in {"INFO", "TRACE"}


def _word(word: str) -> Callable[[Place, str], bool]:
    return lambda _, value: value.strip().upper() == word


def _torch_on(_: Place, value: str) -> bool:
    return value.lower() in {"1", "y", "yes", "t", "true"}


def _zero(place: Place, value: str) -> bool:
    return _number(place, value, -1) == 0


def _positive(place: Place, value: str) -> bool:
    return _number(place, value, 0) > 0


WORKAROUNDS: tuple[Workaround, ...] = (
    Workaround(
        "NCCL_P2P_DISABLE",
        _among_several(1),
        "GPUs of one node talk through host memory instead of NVLink or PCIe, several times slower",
    ),
    Workaround(
        "NCCL_P2P_LEVEL",
        _level_is_off,
        "LOC allows no peer to peer at all: GPUs of one node talk through host memory, several times slower",
    ),
    Workaround(
        "NCCL_SHM_DISABLE",
        _among_several(1),
        "GPUs of one node without peer to peer talk through the network card instead of host memory",
    ),
    Workaround(
        "NCCL_NVLS_ENABLE",
        _nvls_off,
        "NVLink SHARP is off, which does sums in the NVSwitch on Hopper and later",
    ),
    Workaround(
        "NCCL_CUMEM_ENABLE",
        _zero,
        "without cuMem there are no NVLink SHARP, no multi-node NVLink and no registered user buffers",
        "info",
    ),
    Workaround(
        "NCCL_PXN_DISABLE",
        _among_several(1),
        "GPUs no longer send through the neighbour whose network card is nearest, so all-to-all crosses rails",
    ),
    Workaround(
        "NCCL_NET_GDR_LEVEL",
        _level_is_off,
        "GPUDirect RDMA is off: all network data makes a detour by host memory",
    ),
    Workaround(
        "NCCL_DMABUF_ENABLE", _zero, "without DMA-BUF, GPUDirect RDMA needs the nvidia-peermem module", "info"
    ),
    Workaround("NCCL_ALGO", _is_set, "NCCL no longer chooses the algorithm by size and topology", "info"),
    Workaround(
        "NCCL_PROTO",
        _is_set,
        "NCCL no longer chooses the protocol by size; LL128 where the hardware is not fit for it corrupts data",
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
        "NCCL_IB_GID_INDEX",
        _gid_forced,
        "from 2.21 NCCL finds the GID by itself; a forced index is wrong where the order of addresses differs",
        "info",
    ),
    Workaround(
        "NCCL_IB_TIMEOUT", _is(0), "the card waits for ever for a lost packet, so a broken link hangs the job"
    ),
    Workaround("NCCL_IGNORE_DISABLED_P2P", _is(1), "a fault of NVLink or of the driver is hidden", "info"),
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
        "every rank writes much; WARN is enough for production",
        "info",
        "set it to WARN",
        "WARN",
    ),
    Workaround(
        "CUDA_LAUNCH_BLOCKING",
        _is(1),
        "every kernel is waited for, so nothing overlaps with communication",
        "warning",
        "remove it: it is for finding the kernel that fails",
    ),
    Workaround(
        "TORCH_NCCL_BLOCKING_WAIT",
        _torch_on,
        "wait() blocks the host until the collective is done, so nothing overlaps, and the watchdog ends no hang",
    ),
    Workaround(
        "TORCH_DISTRIBUTED_DEBUG",
        _word("DETAIL"),
        "every collective is preceded by a check of all ranks over Gloo",
        "warning",
        "remove it, or set INFO",
    ),
    Workaround("TORCH_NCCL_DESYNC_DEBUG", _torch_on, "every collective is written to the store", "info"),
    Workaround("TORCH_NCCL_NAN_CHECK", _torch_on, "every buffer is read once more before it is sent", "info"),
)


# --- RDMA turned off --------------------------------------------------------------------------------------------------


def _network_turned_off(place: Place) -> Iterator[Judged]:
    """NCCL_IB_DISABLE=1 and NCCL_NET=Socket cost what RDMA gives, where there is any."""
    network = place.value("NCCL_NET")
    by_name = network is not None and network.lower() == "socket"
    is_off = place.number("NCCL_IB_DISABLE", 0) != 0
    if is_off and network is not None and network.lower() not in {"ib", "socket"}:
        return  # a plug-in is demanded by name, so InfiniBand of NCCL itself is not in question
    names = [name for name, has in (("NCCL_IB_DISABLE", is_off), ("NCCL_NET", by_name)) if has]
    if not names:
        return
    has_rdma, devices = _rdma(place)
    if has_rdma == "no":
        return
    if has_rdma == "yes":
        cost = f"NCCL uses TCP only, though {devices} would be 5 to 50 times faster"
    else:
        cost = "NCCL uses TCP only, 5 to 50 times slower if this node has RDMA devices, which is not known"
    yield Case(
        "warning",
        tuple(names),
        " and ".join(shown(name, place.environment[name]) for name in names),
        cost,
        f"{' and '.join(names)} not set",
        "NCCL src/transport/net_ib (ncclIbInit), src/init.cc",
        unset(*names, text="remove it unless RDMA is broken here"),
    )


def _rdma(place: Place) -> tuple[Certainty, str]:
    """Whether there are ports that NCCL's own RDMA network could use, and their names."""
    rdma = place.facts.rdma
    if isinstance(rdma, Missing):
        return "not known", ""
    usable = [port.device for port in rdma.ports if _is_active(port)]
    doubtful = [
        port for port in rdma.ports if isinstance(port.state, Missing) or isinstance(port.link_layer, Missing)
    ]
    if usable:
        names = list(dict.fromkeys(usable))
        return "yes", ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")  # noqa: PLR2004
    return ("not known" if doubtful else "no"), ""


def _is_active(port: RdmaPort) -> bool:
    return port.state == "ACTIVE" and port.link_layer in {"InfiniBand", "Ethernet"}
