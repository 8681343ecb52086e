"""What helped, according to the log: a setting with which the job works shows what it failed over. Pure."""

from __future__ import annotations

import re

from ncclcheck.checks.logs._view import remarks, troubles
from ncclcheck.model.events import Log, Remark

# Which cause a setting gets around.
_HELPS = (
    (re.compile(r"NCCL_P2P_(?:DISABLE=1|LEVEL=(?:LOC|0|PIX|NVL))"), "p2p-broken"),
    (re.compile(r"NCCL_IB_(?:GID_INDEX|ROCE_VERSION_NUM)="), "roce-gid"),
    (re.compile(r"NCCL_SHM_DISABLE=1"), "shm-too-small"),
    (re.compile(r"(?:NCCL|GLOO)_SOCKET_IFNAME="), "wrong-interface"),
    (re.compile(r"NCCL_(?:IB_HCA|CROSS_NIC)="), "ib-hca-selection"),
    (re.compile(r"NCCL_(?:NET_GDR_LEVEL=(?:0|LOC)|NET_GDR_READ=0|DMABUF_ENABLE=0)"), "gdr-unavailable"),
    (re.compile(r"NCCL_(?:MNNVL|NVLS)_ENABLE=0"), "nvlink-fabric-service"),
    (re.compile(r"NCCL_(?:NET_PLUGIN=none|COLLNET_ENABLE=0)"), "net-plugin-config"),
    (re.compile(r"NCCL_HOSTID="), "host-hash-collision"),
    (
        re.compile(r"(?:(?:down|up)grad|updat|switch|revert)\w{1,4} (?!.{0,80}=)", re.IGNORECASE),
        "nccl-or-driver-bug",
    ),
)
FOLLOWS = (
    "ib-link-or-fabric",
    "slow-rank-timeout",
    "firewall-blocked-ports",
    "rank-exception",
    "world-size-mismatch",
    "nccl-or-driver-bug",
)


def remedies(log: Log, slug: str) -> tuple[Remark, ...]:
    """Return the lines that say that a setting helped against the cause, in a log with trouble."""
    found = remarks(log, "remedy")
    if not found or not troubles(log):
        return ()
    return tuple(
        remark
        for remark in found
        if any(cause == slug and sign.search(remark.text) for sign, cause in _HELPS)
    )
