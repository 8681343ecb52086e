"""ConnectX-8 cards whose data reaches the GPUs by a PCI function of its own (data direct), past the CPU.

NCCL src/transport/net_ib.cc (ncclIbInit), 2.27.3 and newer: such a port is called `mlx5_0_dma` and sits where that
function is. /sys does not show which function is which card's (mlx5dv_get_data_direct_sysfs_path asks the driver).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ncclcheck.model.fact import Missing
from ncclcheck.model.hardware import Pci, RdmaPort
from ncclcheck.nccl import versions
from ncclcheck.nccl.number import number

_FUNCTION = ("0x15b3", "0x2100")  # Linux drivers/infiniband/hw/mlx5/data_direct.c
_CARD = "MT4131"  # ConnectX-8
_SUFFIX = "_dma"


def is_possible(port: RdmaPort, pci: Pci, environment: Mapping[str, str], version: str) -> bool:
    """Return True if NCCL may place the port at a data-direct function, so how far a GPU is from it is not known."""
    return (
        (isinstance(port.hca_type, Missing) or port.hca_type == _CARD)
        and versions.parse(version) >= versions.DATA_DIRECT_SINCE
        and number(environment.get("NCCL_IB_DATA_DIRECT"), 1, version) in (1, 2)
        and any((device.vendor, device.device) == _FUNCTION for device in pci.devices)
    )


def plain(port: str, ports: Collection[str]) -> str:
    """Return `mlx5_0:1` for `mlx5_0_dma:1`, unless the machine has a device of that name."""
    name, _, number_of_port = port.partition(":")
    return port if port in ports else f"{name.removesuffix(_SUFFIX)}:{number_of_port}"
