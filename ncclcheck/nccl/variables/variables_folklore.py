"""Names that people set and that nobody reads, each with what does what they hoped for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ncclcheck.nccl.variables.variables import TABLE

_TIMEOUT = (
    "the time-out of collectives is init_process_group(timeout=...) of torch, 10 minutes for NCCL by default"
)
_CONNECT = (
    "NCCL waits for connections by NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC (from NCCL 2.24)"
)
_PORTS = "NCCL has no setting for ports: it takes what net.ipv4.ip_local_port_range allows"
_IFNAME = "NCCL_SOCKET_IFNAME chooses the interfaces"
_HCA = "NCCL_IB_HCA chooses the RDMA devices"
_GID = "NCCL_IB_GID_INDEX chooses the GID (from NCCL 2.21 NCCL finds it by itself)"
_LEVEL = "NCCL_DEBUG sets how much NCCL prints (WARN, INFO)"
_GDR = "NCCL_NET_GDR_LEVEL sets how far GPUDirect RDMA is used"

# No occurrence in any NCCL from 2.4 to 2.32 nor in torch up to 2.15.
FOLKLORE: Mapping[str, str] = {
    "NCCL_TIMEOUT": _TIMEOUT,
    "NCCL_TIMEOUT_MS": _TIMEOUT,
    "NCCL_TIMEOUT_SEC": _TIMEOUT,
    "NCCL_COMM_TIMEOUT": _TIMEOUT,
    "NCCL_COLL_TIMEOUT": _TIMEOUT,
    "NCCL_OP_TIMEOUT": _TIMEOUT,
    "NCCL_WATCHDOG_TIMEOUT": f"{_TIMEOUT}; the watchdog's own is TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "NCCL_HEARTBEAT_TIMEOUT_SEC": "torch reads TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_TIMEOUT": _TIMEOUT,
    "TORCH_NCCL_TIMEOUT_SEC": _TIMEOUT,
    "TORCH_NCCL_HEARTBEAT_TIMEOUT": "torch reads TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "GLOO_TIMEOUT": "the time-out of Gloo is init_process_group(timeout=...) of torch (30 minutes)",
    "GLOO_TIMEOUT_SECONDS": "the time-out of Gloo is init_process_group(timeout=...) of torch (30 minutes)",
    "GLOO_IFNAME": "Gloo reads GLOO_SOCKET_IFNAME",
    "GLOO_INTERFACE": "Gloo reads GLOO_SOCKET_IFNAME",
    "NCCL_SOCKET_TIMEOUT": _CONNECT,
    "NCCL_CONNECT_TIMEOUT": _CONNECT,
    "NCCL_INIT_TIMEOUT": _CONNECT,
    "NCCL_BOOTSTRAP_TIMEOUT": _CONNECT,
    "NCCL_PORT": _PORTS,
    "NCCL_PORT_RANGE": _PORTS,
    "NCCL_SOCKET_PORT": _PORTS,
    "NCCL_SOCKET_PORT_RANGE": _PORTS,
    "NCCL_LISTEN_PORT": _PORTS,
    "NCCL_IB_GID": _GID,
    "NCCL_GID_INDEX": _GID,
    "NCCL_ROCE_GID_INDEX": _GID,
    "NCCL_IB_DEVICE": _HCA,
    "NCCL_IB_DEVICES": _HCA,
    "NCCL_IB_DEV": _HCA,
    "NCCL_IB_IFNAME": f"{_HCA}, {_IFNAME}",
    "NCCL_IB_HCAS": _HCA,
    "NCCL_HCA": _HCA,
    "NCCL_IB_ENABLE": "InfiniBand is used where it is there; NCCL_IB_DISABLE=1 turns it off",
    "NCCL_ROCE_VERSION": "NCCL_IB_ROCE_VERSION_NUM prefers a version of RoCE (from NCCL 2.21)",
    "NCCL_SOCKET_IF_NAME": _IFNAME,
    "NCCL_SOCKETIFNAME": _IFNAME,
    "NCCL_IFNAME": _IFNAME,
    "NCCL_INTERFACE": _IFNAME,
    "NCCL_NET_IFNAME": _IFNAME,
    "NCCL_SOCKET_INTERFACE": _IFNAME,
    "NCCL_LOG_LEVEL": _LEVEL,
    "NCCL_DEBUG_LEVEL": _LEVEL,
    "NCCL_LOG_FILE": "NCCL_DEBUG_FILE names the file that NCCL writes to",
    "NCCL_P2P_ENABLE": "peer to peer is used where it works; NCCL_P2P_DISABLE=1 turns it off",
    "NCCL_SHM_ENABLE": "shared memory is used where it works; NCCL_SHM_DISABLE=1 turns it off",
    "NCCL_NVLINK_DISABLE": "NCCL_P2P_LEVEL and NCCL_P2P_DISABLE limit the use of NVLink",
    "NCCL_NVLS_DISABLE": "NCCL_NVLS_ENABLE=0 turns NVLink SHARP off",
    "NCCL_GDR_ENABLE": _GDR,
    "NCCL_GDR_LEVEL": _GDR,
    "NCCL_GDR_DISABLE": _GDR,
    "NCCL_GPUDIRECT": _GDR,
    "NCCL_GPUDIRECT_DISABLE": _GDR,
    "NCCL_MAX_P2P_PEERS": "NCCL's own messages call it so, but it reads NCCL_P2P_MAX_PEERS (from 2.30)",
    "NCCL_MAX_CGA_CLUSTER_SIZE": "NCCL's own messages call it so, but it reads NCCL_CGA_CLUSTER_SIZE",
    "NCCL_BUFFER_SIZE": "NCCL_BUFFSIZE is the name",
    "NCCL_BUFFSIZE_BYTES": "NCCL_BUFFSIZE is the name",
    "NCCL_NRINGS": "NCCL_MIN_CTAS and NCCL_MAX_CTAS set how many channels are used",
    "NCCL_NCHANNELS": "NCCL_MIN_CTAS and NCCL_MAX_CTAS set how many channels are used",
    "NCCL_ALGORITHM": "NCCL_ALGO is the name",
    "NCCL_PROTOCOL": "NCCL_PROTO is the name",
    "NCCL_TREE_ENABLE": "NCCL_ALGO chooses algorithms",
    "NCCL_RDMA_ENABLE": "RDMA is used where it is there; NCCL_IB_DISABLE=1 turns it off",
    "NCCL_RDMA_DISABLE": "NCCL_IB_DISABLE=1 turns RDMA off",
    "NCCL_ERROR_HANDLING": "torch reads TORCH_NCCL_ASYNC_ERROR_HANDLING",
}

# Those of which the value is right, and only the name is not.
RENAMED: Mapping[str, str] = {
    "NCCL_HEARTBEAT_TIMEOUT_SEC": "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT": "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "GLOO_IFNAME": "GLOO_SOCKET_IFNAME",
    "GLOO_INTERFACE": "GLOO_SOCKET_IFNAME",
    "NCCL_GID_INDEX": "NCCL_IB_GID_INDEX",
    "NCCL_ROCE_GID_INDEX": "NCCL_IB_GID_INDEX",
    **dict.fromkeys(
        ("NCCL_IB_DEVICE", "NCCL_IB_DEVICES", "NCCL_IB_DEV", "NCCL_IB_HCAS", "NCCL_HCA"), "NCCL_IB_HCA"
    ),
    **dict.fromkeys(
        (
            "NCCL_SOCKET_IF_NAME",
            "NCCL_SOCKETIFNAME",
            "NCCL_IFNAME",
            "NCCL_INTERFACE",
            "NCCL_NET_IFNAME",
            "NCCL_SOCKET_INTERFACE",
        ),
        "NCCL_SOCKET_IFNAME",
    ),
    "NCCL_LOG_LEVEL": "NCCL_DEBUG",
    "NCCL_DEBUG_LEVEL": "NCCL_DEBUG",
    "NCCL_LOG_FILE": "NCCL_DEBUG_FILE",
    "NCCL_MAX_P2P_PEERS": "NCCL_P2P_MAX_PEERS",
    "NCCL_MAX_CGA_CLUSTER_SIZE": "NCCL_CGA_CLUSTER_SIZE",
    "NCCL_BUFFER_SIZE": "NCCL_BUFFSIZE",
    "NCCL_BUFFSIZE_BYTES": "NCCL_BUFFSIZE",
    "NCCL_ALGORITHM": "NCCL_ALGO",
    "NCCL_PROTOCOL": "NCCL_PROTO",
    "NCCL_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
}
_SLIPS_OF_NCCL = re.compile(r"^(NCLL|NCC|NCL|NCCLL|NNCL|NCCCL|NCCK|CNCL|NNCCL)_")

_FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(TORCH_)?NCCL_(\w+_)?TIME_?OUT(_\w+)?"), _TIMEOUT),
    (re.compile(r"NCCL_ROCE_\w+"), "NCCL calls RoCE IB: its settings begin with NCCL_IB_"),
    (re.compile(r"NCCL_(\w+_)?PORTS?(_RANGE|_MIN|_MAX)?"), _PORTS),
)


def folklore(name: str) -> str | None:
    """What does what the user of this name hoped for; None where it is not such a name."""
    if name in FOLKLORE:
        return FOLKLORE[name]
    return next((advice for pattern, advice in _FAMILIES if pattern.fullmatch(name)), None)


def in_the_right_spelling(name: str) -> str | None:
    """The known name that `name` is apart from case, blanks, dashes, `export` and slips in NCCL; None: there is none.

    Names of variables are exact on Linux: nobody reads nccl_debug.
    """
    plain = re.sub(r"[-. ]", "_", re.sub(r"^export\s+", "", name.strip()))
    for spelt in (plain.upper(), _SLIPS_OF_NCCL.sub("NCCL_", plain.upper())):
        if spelt != name and spelt in TABLE:
            return spelt
    return None


@lru_cache(maxsize=1024)  # every node of a job has the same slips
def did_you_mean(name: str, most_changes: int = 3) -> str | None:
    """The known name that `name` is a slip of: the nearest by insertions, deletions, changes and swaps of letters.

    At most `most_changes`, and at most one in five letters. Words in another order count as one change.
    """
    limit = min(most_changes, max(1, len(name) // 5))
    near = [(distance, known) for known in TABLE if (distance := _distance(name, known, limit)) <= limit]
    return min(near)[1] if near else None


def _distance(name: str, known: str, limit: int) -> int:
    if abs(len(name) - len(known)) > limit:
        return limit + 1
    if name != known and sorted(name.split("_")) == sorted(known.split("_")):
        return 1
    return _edit_distance(name, known)


def _edit_distance(one: str, other: str) -> int:
    """Optimal string alignment: how many letters have to be added, dropped, changed or swapped with their neighbour."""
    rows: list[list[int]] = [list(range(len(other) + 1))]
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, against in enumerate(other, 1):
            best = min(rows[-1][column] + 1, line[-1] + 1, rows[-1][column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                best = min(best, rows[-2][column - 2] + 1)
            line.append(best)
        rows.append(line)
    return rows[-1][-1]
