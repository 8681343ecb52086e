"""NCCL versions as numbers, and the versions at which a rule that a prediction needs has changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias, TypeVar

from ncclcheck.model.errors import UsageError

Version: TypeAlias = tuple[int, int, int]
T = TypeVar("T")

OLDEST = "2.18.1"
NEWEST = "2.32.3"

CONF_FILE_VARIABLE_SINCE: Version = (2, 23, 0)  # NCCL_CONF_FILE is read
NO_INTERFACE_IS_USAGE_ERROR_SINCE: Version = (2, 24, 0)  # result code 5 instead of 3
RUNNING_NEEDED_SINCE: Version = (2, 28, 0)  # IFF_RUNNING; virbr left for last; first public tag 2.28.3
ENV_PLUGIN_SINCE: Version = (2, 28, 0)  # libnccl-env.so may override every variable
COMM_ID_INVERTED_SINCE: Version = (2, 29, 0)  # first read tag 2.29.2
COMM_ID_INVERTED_BEFORE: Version = (2, 30, 0)  # fixed in 2.30.3, the first read tag of 2.30
HOME_VARIABLE_SINCE: Version = (2, 30, 0)  # ~/.nccl.conf is under $HOME instead of the passwd home
CARRIAGE_RETURN_STRIPPED_SINCE: Version = (2, 30, 0)  # first read tag 2.30.3

# src/transport/net_ib.cc (since 2.29 net_ib/*.cc), read at every public tag from 2.18.1 to 2.30.7
MORE_IB_DEVICES_SINCE: Version = (2, 18, 5)  # MAX_IB_DEVS is 32, 16 before
IB_PORTS_MERGED_SINCE: Version = (2, 20, 0)  # NCCL_IB_MERGE_NICS; by NET/IB itself, two ports per device
GID_CHOSEN_SINCE: Version = (2, 21, 0)  # NCCL_IB_GID_INDEX=-1 is the default: the dynamic choice
GID_OF_NATIVE_IB_FIXED_SINCE: Version = (
    2,
    22,
    0,
)  # NCCL_IB_ROUTABLE_FLID_GID_INDEX; NCCL_IB_GID_INDEX ignored there
MIXED_CARDS_NOT_MERGED_SINCE: Version = (2, 22, 0)  # "Detected a mix of single and multiple-port NICs"
ADDRESS_RANGE_NEEDS_NO_SLASH_SINCE: Version = (2, 23, 0)  # before, NCCL_IB_ADDR_RANGE without a slash crashes
MERGED_BY_TOPOLOGY_SINCE: Version = (
    2,
    24,
    0,
)  # NCCL_NET_MERGE_LEVEL, src/graph/topo.cc; four ports per device
UNREADABLE_GID_TYPE_TOLERATED_SINCE: Version = (2, 26, 0)  # EINVAL is no error; first read tag 2.26.2
IB_SORTED_BY_PCI_SINCE: Version = (2, 29, 7)  # NCCL_IB_DEVICE_PCI_ORDER; not in 2.29.3
IBVERBS_LIB_SINCE: Version = (2, 30, 0)  # NCCL_IBVERBS_LIB, src/misc/ibvsymbols.cc; first read tag 2.30.3
MNNVL_TRIED_SINCE: Version = (2, 25, 0)  # src/mnnvl.cc allocates memory for IMEX before MNNVL is used; 2.25.1
MNNVL_FAILS_SINCE: Version = (
    2,
    27,
    0,
)  # and that it cannot is an error, no longer "no MNNVL"; first tag 2.27.3
SHARED_GPUS_SINCE: Version = (2, 30, 0)  # NCCL_MULTI_RANK_GPU_ENABLE, src/init.cc; first read tag 2.30.3
RAIL_AND_PLANE_SINCE: Version = (
    2,
    30,
    5,
)  # name:port:rail:plane, src/misc/utils.cc; in 2.30.7, not in 2.30.4

# src/net.cc, since 2.27 src/plugin/net.cc; src/init.cc
PLUGIN_VALUE_IS_A_FILE_SINCE: Version = (2, 21, 0)  # NCCL_NET_PLUGIN is first tried as a file name or path
PLUGIN_STATIC_SINCE: Version = (2, 22, 0)  # STATIC_PLUGIN is the program itself
PLUGIN_LIST_SINCE: Version = (2, 27, 0)  # a comma list; empty no longer means libnccl-net.so
PLUGIN_PATH_AGAIN_SINCE: Version = (2, 27, 5)  # 2.27.3 makes libnccl-net-X.so of a path too
PLUGIN_NONE_SINCE: Version = (2, 28, 0)  # `none` switches external plug-ins off
PLUGIN_APIS: tuple[tuple[Version, range], ...] = (  # the ncclNetPlugin_vN that a version loads
    ((2, 30, 0), range(6, 13)),
    ((2, 28, 0), range(6, 12)),
    ((2, 26, 0), range(6, 11)),
    ((2, 24, 0), range(5, 10)),
    ((2, 20, 0), range(5, 9)),
    ((2, 19, 0), range(5, 8)),
    ((0, 0, 0), range(4, 7)),
)

# Which files tell NET/IB that a peer-memory module is loaded: ncclIbGdrSupport
PEER_MEMORY: tuple[tuple[Version, tuple[str, ...]], ...] = (
    (
        (2, 23, 0),
        (
            "/sys/kernel/mm/memory_peers/nv_mem/version",
            "/sys/kernel/mm/memory_peers/nv_mem_nc/version",
            "/sys/module/nvidia_peermem/version",
        ),
    ),
    (
        (2, 22, 0),
        ("/sys/kernel/mm/memory_peers/nv_mem/version", "/sys/kernel/mm/memory_peers/nv_mem_nc/version"),
    ),
    (
        (0, 0, 0),
        (
            "/sys/kernel/mm/memory_peers/nv_mem/version",
            "/sys/kernel/mm/memory_peers/nvidia-peermem/version",
        ),
    ),
)
C2C_LEVEL_SINCE: Version = (2, 26, 0)  # a name for NCCL_NET_GDR_LEVEL, src/graph/paths.cc
P2C_LEVEL_SINCE: Version = (2, 27, 0)
GDR_OVER_C2C_SINCE: Version = (2, 27, 0)  # NCCL_NET_GDR_C2C is 1 by default, 0 in 2.26, src/graph/paths.cc
DATA_DIRECT_SINCE: Version = (2, 27, 3)  # NCCL_IB_DATA_DIRECT, src/transport/net_ib.cc

# One version on each side of every rule above that can change a choice: what a choice is compared with.
MILESTONES = (
    "2.18.1",
    "2.18.6",
    "2.20.5",
    "2.21.5",
    "2.22.3",
    "2.23.4",
    "2.24.3",
    "2.26.2",
    "2.27.7",
    "2.28.9",
    "2.29.3",
    "2.29.7",
    "2.30.4",
    "2.30.7",
    "2.31.2",
    NEWEST,
)

_DOTTED = re.compile(r"\s*\(?(\d{1,4})[.,]\s*(\d{1,4})(?:[.,]\s*(\d{1,4}))?\)?(?:[+-].*)?\s*")
_FIRST_CODE_WITH_TWO_DIGIT_MINOR = 20900  # NCCL_VERSION(X, Y, Z) of nccl.h: 2.9.0 and later
_CODE = re.compile(r"\s*(\d{4,6})\s*")


@lru_cache(maxsize=1024)
def parse(text: str) -> Version:
    """Return the version in `text`: `2.28.9`, `2.28`, `2.28.9+cuda12.9`, `(2, 28, 9)`, or NCCL's own number `22809`.

    Raises UsageError with one sentence when it is none of these. The number is NCCL_VERSION of `nccl.h`.
    """
    if match := _DOTTED.fullmatch(text):
        major, minor, patch = (int(part or 0) for part in match.groups())
        return major, minor, patch
    if match := _CODE.fullmatch(text):
        code = int(match.group(1))
        major_unit = 10000 if code >= _FIRST_CODE_WITH_TWO_DIGIT_MINOR else 1000
        return code // major_unit, code % major_unit // 100, code % 100
    raise UsageError(f"{text!r} is no NCCL version: a version looks like 2.28.9")


@lru_cache(maxsize=1024)
def is_version(text: str) -> bool:
    """Return True if `parse` accepts the text."""
    return bool(_DOTTED.fullmatch(text) or _CODE.fullmatch(text))


def at(table: Iterable[tuple[Version, T]], version: Version) -> T:
    """Return the entry of a table (newest first) that holds for `version`."""
    return next(value for since, value in table if since <= version)


def is_comm_id_inverted(version: Version) -> bool:
    """Return True for 2.29: its IPv4 comparison for NCCL_COMM_ID takes an interface that is NOT in the subnet."""
    return COMM_ID_INVERTED_SINCE <= version < COMM_ID_INVERTED_BEFORE
