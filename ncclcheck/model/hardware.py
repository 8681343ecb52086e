"""What /sys and /proc say of RDMA ports, the PCI bus and the kernel: three sections of `NodeFacts`."""

from __future__ import annotations

from msgspec import Struct

from ncclcheck.model.fact import NOT_TOLD, Fact


class Gid(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of a port's GID table that is set: neither all zero nor a bare `fe80::`.

    `gid` as /sys writes it, eight groups of four digits. `type` is `RoCE v2` or `IB/RoCE v1`; it is Missing where the
    entry's network device belongs to another network namespace.
    """

    index: int
    gid: str
    type: Fact[str]
    netdev: Fact[str]


class RdmaPort(Struct, frozen=True, forbid_unknown_fields=True):
    """One port of an RDMA device."""

    device: str
    port: int
    link_layer: Fact[str]  # InfiniBand, Ethernet
    state: Fact[str]  # ACTIVE, DOWN, INIT, ARMED
    phys_state: Fact[str]  # in the kernel's words, without the number
    rate_gbps: Fact[float]  # the rate now
    width: Fact[str]  # 4X
    speed: Fact[str]  # NDR
    lid: Fact[int]  # 0 on Ethernet
    active_mtu: Fact[int]  # in bytes, from libibverbs; a recorded machine does not have it
    pci: Fact[str]
    numa_node: Fact[int]  # Missing where the firmware names none
    firmware: Fact[str]
    board_id: Fact[str]
    hca_type: Fact[str]
    node_guid: Fact[str]
    driver: Fact[str]
    uverbs: Fact[str]  # uverbs0: its device file is /dev/infiniband/uverbs0
    gids: Fact[tuple[Gid, ...]]  # the entries that are set
    # Missing: the table could not be read, so an entry that is not listed says nothing about the port
    gid_table_length: Fact[int] = NOT_TOLD


class Rdma(Struct, frozen=True, forbid_unknown_fields=True):
    """RDMA ports in the kernel's order, and what a process needs to use them."""

    ports: tuple[RdmaPort, ...]
    device_files: Fact[tuple[str, ...]]  # names in /dev/infiniband that begin with uverbs
    # the paths by which NCCL detects a peer-memory module, as far as they exist
    peer_memory: Fact[tuple[str, ...]]
    # device files that this process may not open for reading and writing
    unusable_files: Fact[tuple[str, ...]] = NOT_TOLD
    # the libibverbs that the loader finds; Missing("absent") where it finds none
    verbs_library: Fact[str] = NOT_TOLD
    # devices that the kernel lists and whose ports could not be read, each with the reason
    unread: dict[str, str] = {}


class PortCounters(Struct, frozen=True, forbid_unknown_fields=True):
    """The error counters of one RDMA port, as the files of its `counters` and `hw_counters` folders are named.

    They count events since the card was started. `before` is read with the other facts, `after` at the end of a run.
    A counter is Missing where its file is there and could not be read.
    """

    device: str
    port: int
    before: Fact[dict[str, Fact[int]]]
    after: Fact[dict[str, Fact[int]]] = NOT_TOLD


class RdmaCounters(Struct, frozen=True, forbid_unknown_fields=True):
    """The error counters of all RDMA ports; of a machine without RDMA, of none."""

    ports: tuple[PortCounters, ...]


class LinkCounters(Struct, frozen=True, forbid_unknown_fields=True):
    """What one network interface has counted since it exists: packets with errors or dropped, changes of its carrier.

    The names are those of /sys/class/net/NAME/statistics, `carrier_changes`, and those of the card's own statistics
    (`ethtool -S`). One that is not there counts 0. `before` is read with the other facts, `after` at the end
    of the run.
    """

    interface: str
    before: Fact[dict[str, Fact[int]]]
    after: Fact[dict[str, Fact[int]]] = NOT_TOLD


class PciDevice(Struct, frozen=True, forbid_unknown_fields=True, rename={"class_code": "class"}):
    """One PCI device, with its values as /sys writes them."""

    address: str
    vendor: Fact[str]  # `0x10de`
    device: Fact[str]  # `0x2330`
    class_code: Fact[str]  # `0x030200`
    numa_node: Fact[int]  # Missing where the firmware names none
    driver: Fact[str]
    link_speed_gt_s: Fact[float]  # the speed that is negotiated now; it falls while a GPU is idle
    link_width: Fact[int]  # the number of lanes that are negotiated now
    max_link_speed_gt_s: Fact[float]  # the highest speed of the device
    max_link_width: Fact[int]  # the most lanes of the device
    # a bridge redirects peer-to-peer requests or completions to the root complex; Missing where the extended
    # config space cannot be read
    acs_redirect: Fact[bool]
    upstream: tuple[str, ...] = ()  # addresses of the bridges above the device, from the root port down
    is_vf: bool = False  # a virtual function (SR-IOV)
    # how memory accesses are translated, in the kernel's words: `DMA` or `DMA-FQ` (translated), `identity`
    # (passed through); `off` where no IOMMU acts on the device
    iommu: Fact[str] = NOT_TOLD


class Pci(Struct, frozen=True, forbid_unknown_fields=True):
    """GPUs, network and RDMA devices, NVSwitches and accelerators, the bridges above them, bridges with known ACS.

    `unread`: addresses that the bus lists and whose device or class could not be read, each with why: they may be GPUs.
    `topology_file`: the file from which NCCL takes the bus before it looks at /sys where no variable names another;
    empty: it is not there.
    """

    devices: tuple[PciDevice, ...]
    unread: dict[str, str] = {}
    topology_file: str = ""


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """Loaded and built-in kernel modules, and what the NVIDIA driver says of itself."""

    modules: Fact[tuple[str, ...]]
    release: Fact[str] = NOT_TOLD
    nvidia_open: Fact[bool] = (
        NOT_TOLD  # /proc/driver/nvidia/version: "Open Kernel Module", which DMA-BUF needs
    )
    virtual_machine: Fact[bool] = NOT_TOLD  # the flag "hypervisor" in /proc/cpuinfo of x86


class HcaChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """An RDMA port that NCCL would use; `gid_index` is None where facts do not tell which GID it would take."""

    device: str
    port: int
    gid_index: int | None


class GpuNic(Struct, frozen=True, forbid_unknown_fields=True):
    """How far a GPU (by PCI address) is from an RDMA device, in NCCL's classes: PIX, PXB, PHB, SYS."""

    gpu: str
    nic: str
    distance: str


class NcclLibrary(Struct, frozen=True, forbid_unknown_fields=True):
    """An NCCL library that a process of this node could load."""

    path: str
    version: Fact[str]  # as the library itself reports it
    # how it is found: LD_PRELOAD, torch's package, inside libtorch_cuda.so, torch, torch (DT_RPATH of ...),
    # torch (DT_RUNPATH of ...), Python package, conda, LD_LIBRARY_PATH, loader cache, system folder
    origin: str
    loaded_by_torch: bool = False  # the library that torch would load


class NetPlugin(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that some version of NCCL would try as its network plug-in, and the result of loading it."""

    file: str
    # what the loader found; Missing("absent"): no such file; Missing("error"): it cannot be loaded, in the
    # loader's words
    path: Fact[str]
    apis: tuple[int, ...] = ()  # the N of its ncclNetPlugin_vN symbols
    # the name of its network (`AWS Libfabric`), with which NCCL_NET is compared
    network: Fact[str] = NOT_TOLD


class TunerPlugin(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that NCCL would try as tuner plug-in, and the result of loading it, as for a network plug-in.

    `apis`: the N of its ncclTunerPlugin_vN symbols. `name`: how it calls itself.
    """

    file: str
    path: Fact[str]
    apis: tuple[int, ...] = ()
    name: Fact[str] = NOT_TOLD


__all__ = [
    "Gid",
    "GpuNic",
    "HcaChoice",
    "Kernel",
    "LinkCounters",
    "NcclLibrary",
    "NetPlugin",
    "Pci",
    "PciDevice",
    "PortCounters",
    "Rdma",
    "RdmaCounters",
    "RdmaPort",
    "TunerPlugin",
]
