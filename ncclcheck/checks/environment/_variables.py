"""Which variables may differ between places of a job, and how bad it is where they must not."""

from __future__ import annotations

from collections.abc import Iterable

from ncclcheck.launch.launcher_registry import is_set_by_a_launcher
from ncclcheck.nccl.number import number, strtoll
from ncclcheck.nccl.variables.variables import TABLE, lookup
from ncclcheck.nccl.variables.variables_folklore import folklore, in_the_right_spelling
from ncclcheck.nccl.variables.variables_types import default_of

# What is a matter of each machine. What launchers set for each node or process is in their records.
_PER_PLACE = frozenset(
    """
    NCCL_HOSTID NCCL_DEBUG_FILE NCCL_TOPO_DUMP_FILE NCCL_GRAPH_DUMP_FILE
    TORCH_NCCL_DEBUG_INFO_TEMP_FILE TORCH_NCCL_DEBUG_INFO_PIPE_FILE TORCH_FR_DUMP_TEMP_FILE NVIDIA_VISIBLE_DEVICES
    CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY CUDA_CACHE_PATH
    HOME HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
    """.split()  # noqa: SIM905 - words are easier to read than a list
)
_PER_RANK = frozenset({"CUDA_VISIBLE_DEVICES", "OMP_PROC_BIND", "OMP_PLACES", "UCX_NET_DEVICES"})

# Ranks that disagree about these take different algorithms, transports or message sizes: a hang or wrong sizes.
# NCCL src/init.cc and src/graph: every rank decides for itself from its own environment.
_FATAL = frozenset(
    """
    NCCL_ALGO NCCL_PROTO NCCL_NET NCCL_NET_PLUGIN NCCL_IB_DISABLE NCCL_SHM_DISABLE NCCL_CROSS_NIC
    NCCL_TOPO_FILE NCCL_GRAPH_FILE NCCL_BUFFSIZE NCCL_LL_BUFFSIZE NCCL_LL128_BUFFSIZE NCCL_NTHREADS
    NCCL_MIN_CTAS NCCL_MAX_CTAS NCCL_MIN_NCHANNELS NCCL_MAX_NCHANNELS NCCL_MIN_NRINGS NCCL_MAX_NRINGS
    NCCL_NCHANNELS_PER_NET_PEER NCCL_IB_QPS_PER_CONNECTION NCCL_IB_SPLIT_DATA_ON_QPS NCCL_COMM_ID NCCL_SOCKET_MAGIC
    """.split()  # noqa: SIM905 - words are easier to read than a list
)
_FATAL_PREFIXES = ("NCCL_P2P_", "NCCL_COLLNET_", "NCCL_CUMEM_")

INTERFACE_NAMES = frozenset({"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"})
_DECIDED_AT_RUN_TIME = -(2**62)  # like no value that anybody sets
# Lists of devices, of which every machine may have its own.
DEVICE_NAMES = frozenset({"NCCL_IB_HCA", "UCX_NET_DEVICES"})


def differs_by_nature(name: str, *, between_ranks: bool = False) -> bool:
    """Return True for a variable that is expected to differ between nodes (or between the ranks of one node)."""
    plain = name.upper() if name.upper().endswith("_PROXY") else name
    return plain in _PER_PLACE or is_set_by_a_launcher(name) or (between_ranks and name in _PER_RANK)


def is_read_by_nobody(name: str) -> bool:
    """Return True for a name that no program reads: a difference has no effect, and `env-unknown` reports it."""
    return lookup(name) is None and (folklore(name) is not None or in_the_right_spelling(name) is not None)


def means_the_same(name: str, values: Iterable[str | None], version: str) -> bool:
    """Return True if NCCL of `version` reads the same number from all values of a numeric variable, None for unset.

    NCCL_IB_DISABLE=0 is the same as none at all, and so is NCCL_IB_DISABLE=true.
    """
    variable = TABLE.get(name)
    if variable is None or variable.owner != "NCCL" or variable.kind not in {"switch", "number"}:
        return False
    default = strtoll(default_of(variable, version))
    is_fixed = default.is_number and not default.rest and default.value is not None
    unset = default.value if is_fixed and default.value is not None else _DECIDED_AT_RUN_TIME
    return len({number(value, unset, version) for value in values}) == 1


def is_fatal(name: str) -> bool:
    """Return True if ranks with different values cannot communicate."""
    return name in _FATAL or name.startswith(_FATAL_PREFIXES)
