"""What one node reports about itself: the sections of `NodeFacts`, each a `Fact`, and the values inside them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.fact import NOT_READ, Fact
from ncclcheck.model.gpu import GpuDriver, GpuLog, GpuState, GpuWork, TorchGpus
from ncclcheck.model.hardware import (
    Kernel,
    LinkCounters,
    NcclLibrary,
    NetPlugin,
    Pci,
    Rdma,
    RdmaCounters,
    TunerPlugin,
)
from ncclcheck.model.image import Image
from ncclcheck.model.job.checkpoints import CheckpointFolder
from ncclcheck.model.launch import Launch

InterfaceKind: TypeAlias = Literal["physical", "ipoib", "loopback", "bond", "bridge", "vlan", "virtual"]
Family: TypeAlias = Literal["inet", "inet6"]
_HARDWARE: tuple[InterfaceKind, ...] = ("physical", "ipoib", "bond", "vlan")

FOLDER_GONE = "the working folder does not exist any more"


class Address(Struct, frozen=True, forbid_unknown_fields=True):
    """One IP address of an interface. `label` is the name getifaddrs reports it under (`eth0:1` for an alias)."""

    family: Family
    address: str
    prefix_length: int
    label: str
    scope_id: int = 0


class Interface(Struct, frozen=True, forbid_unknown_fields=True):
    """One network interface. Interfaces are in kernel (ifindex) order, addresses in getifaddrs order."""

    name: str
    kind: InterfaceKind
    type: Fact[int]  # ARPHRD_ number (linux/if_arp.h)
    mtu: Fact[int]
    operstate: Fact[str]
    flags: tuple[str, ...]  # lower-case names of all flags that are set
    addresses: tuple[Address, ...]
    speed_mbps: Fact[int]
    pci: Fact[str]
    driver: Fact[str]
    index: int = 0  # 0 where it is not known
    # IFF_RUNNING as getifaddrs reports it; left out, it follows as in the kernel: up, and in state up or
    # unknown (net/core/dev.c dev_get_flags, netif_oper_up)
    running: bool | None = None
    master: str | None = None
    lower: tuple[str, ...] = ()
    is_vf: bool = False
    tunnel: str | None = (
        None  # sysfs DEVTYPE or link kind of a virtual interface: veth, tun, vxlan, wireguard, ...
    )

    def __post_init__(self) -> None:
        if self.running is None:
            is_operational = "up" in self.flags and self.operstate in ("up", "unknown")
            force_setattr(self, "running", is_operational or "running" in self.flags)

    @property
    def is_hardware(self) -> bool:
        """Whether a network card is behind it, alone, in a bond or under a VLAN."""
        return self.kind in _HARDWARE


class Route(Struct, frozen=True, forbid_unknown_fields=True):
    """How the kernel would send to `destination`: the source address and interface it picks."""

    destination: str
    purpose: str  # "master" or the host name of a peer
    source_address: Fact[str]
    interface: Fact[str]


class Names(Struct, frozen=True, forbid_unknown_fields=True):
    """The host name and what it resolves to here, which is what Gloo binds when GLOO_SOCKET_IFNAME is unset."""

    hostname: str
    fqdn: Fact[str]
    addresses: Fact[tuple[str, ...]]
    hanging: tuple[str, ...] = ()  # files that every look-up reads, and that hang when read
    silent_servers: tuple[str, ...] = ()  # name servers of /etc/resolv.conf that answer no query


class Software(Struct, frozen=True, forbid_unknown_fields=True):
    """Versions, each as the part itself reports it."""

    ncclcheck: str
    python: str
    torch: Fact[str]
    torch_cuda: Fact[str]
    torch_nccl: Fact[str]
    nccl: Fact[str]  # what ncclGetVersion of the library that torch would load returns
    driver: Fact[str]
    kernel: str
    os: Fact[str]
    machine: str


class CodePath(Struct, frozen=True, forbid_unknown_fields=True):
    """One `--code` path: the tree hash over names and contents of its files."""

    path: str
    tree_sha256: Fact[str]
    files: Fact[int]
    git_commit: Fact[str]
    git_dirty: Fact[bool]


class Code(Struct, frozen=True, forbid_unknown_fields=True):
    """The code of the job: each `--code` path, and the list of installed Python packages."""

    paths: tuple[CodePath, ...]
    packages_sha256: Fact[str]
    packages: Fact[dict[str, str]]  # name -> version


class Gpu(Struct, frozen=True, forbid_unknown_fields=True):
    """One GPU as NVML lists it."""

    index: int
    name: Fact[str]
    uuid: Fact[str]
    pci: Fact[str]
    memory_bytes: Fact[int]
    state: GpuState = GpuState()


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Basic limits of this process and host. An unlimited rlimit is None."""

    mem_total_kib: Fact[int] = NOT_READ
    dev_shm: Fact[DevShm] = NOT_READ
    nofile: Fact[int | None] = NOT_READ
    memlock_kib: Fact[int | None] = NOT_READ
    nproc: Fact[int | None] = NOT_READ
    cpus: Fact[int] = NOT_READ  # cores this process may run on
    port_range: Fact[tuple[int, int]] = NOT_READ  # net.ipv4.ip_local_port_range: where NCCL listens
    nofile_hard: Fact[int | None] = NOT_READ
    cgroup: Fact[Cgroup] = NOT_READ
    capabilities: Fact[tuple[str, ...]] = NOT_READ  # effective, only those that matter to NCCL: ipc_lock, ...
    namespaces: Fact[dict[str, str]] = NOT_READ  # kind -> number, as /proc/self/ns links to it


class DevShm(Struct, frozen=True, forbid_unknown_fields=True):
    """/dev/shm: the type of its filesystem, its size, and what a user may still write.

    A recorded tmpfs without a size option does not give its size, and no recording gives the free space.
    """

    type: str
    size_kib: Fact[int]
    free_kib: Fact[int] = NOT_READ


class Cgroup(Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of this process's control groups: the tightest from the group up to the root; None: no limit."""

    version: Literal["v1", "v2", "hybrid"]  # hybrid: v1 hierarchies hold some of the controllers
    cpu_quota: Fact[float | None]  # in CPUs
    cpuset_cpus: Fact[int | None]  # number of CPUs in the set
    memory_max_bytes: Fact[int | None]
    pids_max: Fact[int | None]
    pids_left: Fact[int | None]  # processes and threads that may still start


class Clock(Struct, frozen=True, forbid_unknown_fields=True):
    """What the kernel reports about its clock (adjtimex(2)).

    `synchronised`: neither STA_UNSYNC nor TIME_ERROR; `max_error_us` is the bound that its discipline keeps.
    """

    synchronised: bool
    max_error_us: int
    source: Fact[str] = NOT_READ  # the clocksource: tsc, kvm-clock, ...


class PathEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a sample: its name below the path and the CRC-32 of that, its size, a hash of its beginning and end.

    A value is Missing where the file was not looked at, or could not be read.
    """

    name: str
    name_hash: int
    size_bytes: Fact[int] = NOT_READ
    sha256: Fact[str] = NOT_READ


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What is below a path. Two nodes with the same files have the same sample, in whatever order they list them."""

    files: int
    names_checksum: int  # over all names, in any order
    complete: bool  # False: time ran out, and `files` and `names_checksum` cover what was listed by then
    sample: tuple[PathEntry, ...]  # the files whose names have the smallest hashes
    largest_hash: int  # of the sample; without a limit (2**32) where the sample holds all names
    sketch: tuple[str, ...] = ()  # of all names: finds the few in which two nodes differ
    unlisted: int = 0  # folders below the path that could not be listed; what is in them is not counted


class PathFact(Struct, frozen=True, forbid_unknown_fields=True):
    """One `--data`, `--code`, `--shared-dir` or `--checkpoint` path as this node sees it."""

    path: str
    purpose: Literal["data", "code", "shared", "checkpoint"]
    # "folder", "file" or "other"; Missing where the path is not there or does not answer, and then so is the
    # rest
    kind: Fact[str]
    listed: Fact[bool] = NOT_READ  # True: it could be listed or opened by this user
    filesystem: Fact[str] = NOT_READ
    source: Fact[str] = NOT_READ  # what is mounted there: a device, server:/export, ...
    read_only: Fact[bool] = NOT_READ
    free_bytes: Fact[int] = NOT_READ
    size_bytes: Fact[int] = NOT_READ
    free_inodes: Fact[int | None] = NOT_READ  # None: the filesystem does not count them
    stat_ms: Fact[float] = NOT_READ  # median of single calls
    read_ms: Fact[float] = NOT_READ  # median of single calls
    manifest: Fact[Manifest] = NOT_READ  # only of `--data`


class NcclConfigFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file NCCL reads settings from, with the NCCL_ settings in it (first setting of a name wins)."""

    path: str
    settings: Fact[dict[str, str]]


class NcclAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What the real library chose when asked for a unique id under an environment."""

    library: str
    version: str
    address: str | None  # the address it bound; None when it failed
    interface: str | None
    port: int | None
    result_code: int
    message: str  # its own warning or "Bootstrap : Using" line


class NcclChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """What NCCL would use on this node: the library's own answer where there is one; the model predicts it always."""

    asked: Fact[NcclAnswer]
    config_files: tuple[NcclConfigFile, ...]
    home_set: bool
    libraries: Fact[tuple[NcclLibrary, ...]] = NOT_READ  # all that could be loaded, torch's first
    plugins: Fact[tuple[NetPlugin, ...]] = NOT_READ  # the network plug-ins NCCL of any version would try
    tuners: Fact[tuple[TunerPlugin, ...]] = NOT_READ  # the tuner plug-ins likewise


MasterOutcome: TypeAlias = Literal[
    "answered",  # our run's store (or the launcher's) answered there
    "serving",  # this is node 0: it serves the store itself
    "unresolvable",
    "loopback",
    "not-first-node",  # the address belongs to this node, which is not node 0; or, on node 0, to another host
    "port-in-use",
    "port-denied",
    "refused",
    "filtered",
    "no-route",
    "foreign",
    "other-key",  # node 0 answers, and has another key than this node, or only one of them has any
    "torch-late",  # importing torch took longer than the time for it
    "torch-broken",  # torch cannot be imported on this node, so it cannot join anything
    "resolver-hangs",  # on this node looking up any name hangs, which torch's store does
    "resolver-slow",  # node 0 serves, but a name server is silent, and torch's store waits for it with each node
    "loopback-down",  # the interface lo is down on node 0, which connects to its own store
    "lost",  # it answered, and then stopped answering
    "not-needed",  # one node only
]


class MasterPath(Struct, frozen=True, forbid_unknown_fields=True):
    """This node's own path to MASTER_ADDR:MASTER_PORT, diagnosed before any answer is trusted."""

    name: str
    port: int
    addresses: Fact[tuple[str, ...]]
    is_local: bool
    source_address: Fact[str]
    interface: Fact[str]
    outcome: MasterOutcome
    detail: str = ""
    attempts: int = 0
    seconds: float = 0.0
    serving_confirmed: bool = False  # node 0 itself told us by datagram that its store is up
    confirmed_by_relay: bool = (
        False  # only another node said that it is up, which does not tell directions apart
    )
    answers_lost: bool = False  # node 0 sees our connection requests: it is its answers that do not arrive
    # Node 0 accepts connections at this address, which is none of the name's: by its own datagram or a relay's
    serves_at: str = ""
    # This node's own firewall rejects what it sends to the master
    blocked_here: bool = False
    # Why node 0 cannot serve its store, as it said by datagram
    not_served: str = ""
    # Nobody holds the port there, over TCP or UDP, and node 0 is heard nowhere: it was not started, or has ended
    nobody_there: bool = False


class NodeFacts(Struct, frozen=True):
    """All facts of one node. A section that this version does not know is ignored when a document is read."""

    launch: Fact[Launch] = NOT_READ
    interfaces: Fact[tuple[Interface, ...]] = NOT_READ
    routes: Fact[tuple[Route, ...]] = NOT_READ
    names: Fact[Names] = NOT_READ
    environment: Fact[dict[str, str]] = NOT_READ
    software: Fact[Software] = NOT_READ
    code: Fact[Code] = NOT_READ
    gpus: Fact[tuple[Gpu, ...]] = NOT_READ
    limits: Fact[Limits] = NOT_READ
    nccl: Fact[NcclChoice] = NOT_READ
    master: Fact[MasterPath] = NOT_READ
    rdma: Fact[Rdma] = NOT_READ
    pci: Fact[Pci] = NOT_READ
    kernel: Fact[Kernel] = NOT_READ
    gpu_driver: Fact[GpuDriver] = NOT_READ
    gpu_log: Fact[GpuLog] = NOT_READ
    gpu_work: Fact[tuple[GpuWork, ...]] = NOT_READ
    torch_gpus: Fact[TorchGpus] = NOT_READ
    clock: Fact[Clock] = NOT_READ
    paths: Fact[tuple[PathFact, ...]] = NOT_READ
    checkpoints: Fact[tuple[CheckpointFolder, ...]] = NOT_READ
    mesh: Fact[Mesh | None] = NOT_READ
    image: Fact[Image] = NOT_READ  # of preflight --image only
    rdma_counters: Fact[RdmaCounters] = NOT_READ
    link_counters: Fact[tuple[LinkCounters, ...]] = NOT_READ
