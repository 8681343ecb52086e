"""A policy that the healthy cluster of the builders meets, and snapshots with another."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.policy.policy import parse_policy
from ncclcheck.model.snapshot import Snapshot

TODAY = "2026-11-21"
MET = """
rdma_ports_per_node = 8
require = [{check = "gpu-count", until = 2099-12-31}]

[versions]
torch = ">=2.9,<3"
cuda = "12.8"
nccl = "2.27.5"
python = "==3.11.*"
ncclcheck = ">=0.1"
driver = "570.86.15"
kernel = "6.8.0-45-generic"

[gpu]
model = "NVIDIA H100*"
memory = "80G"
compute_capability = "9.0"

[network]
interface = "eth*"
subnet = "10.0.0.0/24"
speed_gbit_s = 100
mtu = 9000

[rdma]
rate_gbit_s = 100

[pcie]
gpu_width = 16
gpu_speed_gt_s = 16
nic_width = 16
nic_speed_gt_s = 16

[limits]
memlock = "unlimited"
shm = "512G"
nofile = 65536

[environment]
NCCL_DEBUG = ["WARN", "INFO"]
NCCL_P2P_DISABLE = false
"""


def with_policy(snapshot: Snapshot, text: str, on: str = TODAY) -> Snapshot:
    """The snapshot of which that policy (site.toml) demands something, judged on that day."""
    return replace(snapshot, expected=replace(parse_policy(text, "site.toml").expected, on=on))
