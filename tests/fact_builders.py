"""What a healthy node says of itself, section by section."""

from __future__ import annotations

import zlib
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import (
    Address,
    Cgroup,
    Clock,
    Code,
    CodePath,
    DevShm,
    Gpu,
    Interface,
    InterfaceKind,
    Limits,
    Manifest,
    MasterOutcome,
    MasterPath,
    Names,
    NcclAnswer,
    NcclChoice,
    NodeFacts,
    PathEntry,
    PathFact,
    Route,
    Software,
)
from ncclcheck.model.gpu import GpuDriver, GpuLog, GpuWork, TorchGpus
from ncclcheck.model.hardware import LinkCounters, NcclLibrary, NetPlugin, TunerPlugin
from ncclcheck.model.launch import Launch
from tests.gpu_builders import healthy_state

MASTER = "10.0.0.1"
PORT = 29500
LIBRARY = "/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
GONE = Missing("timeout", "no answer in 10 s")


T = TypeVar("T")


def some(fact: Fact[T]) -> T:
    """The value of a fact that a builder filled in."""
    assert not isinstance(fact, Missing), fact
    return fact


def host_of(node_rank: int) -> str:
    """node01 is node rank 0."""
    return f"node{node_rank + 1:02d}"


def address_of(node_rank: int) -> str:
    """The address of eth0 of a node."""
    return f"10.0.0.{node_rank + 1}"


def interface(
    name: str,
    *addresses: str,
    index: int = 2,
    kind: InterfaceKind = "physical",
    mtu: int = 9000,
    running: bool = True,
    up: bool = True,
    tunnel: str | None = None,
) -> Interface:
    """An interface with addresses written as `10.0.0.1/24`."""
    loopback = kind == "loopback"
    flags = ("up",) * up + ("loopback",) * loopback + ("broadcast", "multicast") * (not loopback)
    return Interface(
        name=name,
        index=index,
        kind=kind,
        type=772 if loopback else 1,
        mtu=mtu,
        operstate="unknown" if loopback else "up" if running else "down",
        flags=flags + ("running",) * running,
        running=running,
        addresses=tuple(_address(text, name) for text in addresses),
        speed_mbps=100_000 if kind == "physical" else Missing("unsupported", "no speed of its own"),
        pci="0000:17:00.0" if kind == "physical" else Missing("absent", "no PCI device"),
        driver="mlx5_core" if kind == "physical" else Missing("absent", "no PCI device"),
        tunnel=tunnel,
    )


def _address(text: str, label: str) -> Address:
    address, _, prefix = text.partition("/")
    return Address("inet6" if ":" in address else "inet", address, int(prefix), label)


def loopback() -> Interface:
    """lo, as every node has it."""
    return interface("lo", "127.0.0.1/8", "::1/128", index=1, kind="loopback", mtu=65536)


def docker0() -> Interface:
    """docker's own bridge, with the address it has on every machine."""
    return interface("docker0", "172.17.0.1/16", index=3, kind="bridge", mtu=1500)


def answer(address: str | None, name: str | None, version: str = "2.27.5") -> NcclAnswer:
    """What the library says when asked for a unique id."""
    if address is None:
        return NcclAnswer(LIBRARY, version, None, None, None, 5, "Bootstrap : no socket interface found")
    return NcclAnswer(LIBRARY, version, address, name, 41001, 0, f"Bootstrap : Using {name}:{address}<0>")


def nccl_choice(asked: NcclAnswer) -> NcclChoice:
    """What a node with torch's own NCCL and no plug-in says of it."""
    return NcclChoice(
        asked=asked,
        config_files=(),
        home_set=True,
        libraries=(NcclLibrary(LIBRARY, asked.version, "torch (DT_RPATH of libtorch_cuda.so)", True),),
        plugins=(NetPlugin("libnccl-net.so", Missing("absent", "no such file")),),
        tuners=(TunerPlugin("libnccl-tuner.so", Missing("absent", "no such file")),),
    )


def launch(node_rank: int, nnodes: int, *, local_rank: int = 0, local_world_size: int = 1) -> Launch:
    """A process under torchrun-style flags."""
    return Launch(
        source="flags",
        rank=node_rank * local_world_size + local_rank,
        world_size=nnodes * local_world_size,
        local_rank=local_rank,
        local_world_size=local_world_size,
        node_rank=node_rank,
        nnodes=nnodes,
        master_addr=MASTER if nnodes > 1 else None,
        master_port=PORT,
        nproc_per_node=8,
    )


def master_path(node_rank: int, nnodes: int = 4, outcome: MasterOutcome | None = None) -> MasterPath:
    """A node's way to node01:29500."""
    healthy: MasterOutcome = "not-needed" if nnodes == 1 else "answered" if node_rank else "serving"
    return MasterPath(
        name=MASTER,
        port=PORT,
        addresses=(MASTER,),
        is_local=node_rank == 0,
        source_address=address_of(node_rank),
        interface="eth0",
        outcome=outcome or healthy,
        attempts=1,
        seconds=0.01,
    )


def software(**changes: Any) -> Software:
    """Versions of a healthy node."""
    healthy = Software(
        ncclcheck="0.1.0",
        python="3.11.9",
        torch="2.9.0",
        torch_cuda="12.8",
        torch_nccl="2.27.5",
        nccl="2.27.5",
        driver="570.86.15",
        kernel="6.8.0-45-generic",
        os="Ubuntu 24.04.1 LTS",
        machine="x86_64",
    )
    return replace(healthy, **changes)


def code_path(**changes: Any) -> CodePath:
    """One `--code` path of a healthy node."""
    return replace(CodePath("/work/train", "a" * 64, 12, "3f2c" * 10, False), **changes)


FILES = {f"shard-{number:02d}.bin": 1 << 20 for number in range(8)}


def manifest(files: dict[str, int] | None = None, **changes: Any) -> Manifest:
    """The manifest of a folder with these files (name -> size), all of them in the sample."""
    files = FILES if files is None else files
    sample = tuple(
        PathEntry(name, zlib.crc32(name.encode()), size, f"{size:064x}")
        for name, size in sorted(files.items())
    )
    checksum = sum(entry.name_hash + 1 for entry in sample)
    return replace(Manifest(len(sample), checksum, True, sample, 1 << 32), **changes)


def path_fact(purpose: Literal["data", "code", "shared"] = "data", **changes: Any) -> PathFact:
    """A path of a healthy node, on a filesystem that all share."""
    healthy = PathFact(
        path=f"/mnt/{purpose}",
        purpose=purpose,
        kind="folder",
        listed=True,
        filesystem="nfs4",
        source="server:/export",
        read_only=False,
        free_bytes=1 << 42,
        size_bytes=1 << 44,
        free_inodes=1 << 30,
        stat_ms=0.2,
        read_ms=1.0 if purpose == "data" else Missing("absent", "not told of this kind of path"),
        manifest=manifest() if purpose == "data" else Missing("absent", "not told of this kind of path"),
    )
    return replace(healthy, **changes)


def limits(**changes: Any) -> Limits:
    """The limits of a healthy node with 96 CPUs and 1 TiB of memory."""
    healthy = Limits(
        mem_total_kib=1 << 30,
        dev_shm=DevShm("tmpfs", 1 << 29, 1 << 29),
        nofile=1 << 20,
        memlock_kib=None,
        nproc=1 << 18,
        cpus=96,
        port_range=(32768, 60999),
        nofile_hard=1 << 20,
        cgroup=Cgroup("v2", None, 96, None, None, None),
        capabilities=(),
        namespaces={"net": "4026531840"},
    )
    return replace(healthy, **changes)


def node_facts(node_rank: int, nnodes: int) -> NodeFacts:
    """Everything a healthy node says of itself."""
    host, address = host_of(node_rank), address_of(node_rank)
    return NodeFacts(
        launch=launch(node_rank, nnodes),
        interfaces=(loopback(), interface("eth0", f"{address}/24")),
        routes=tuple(
            Route(address_of(peer), host_of(peer), address, "eth0")
            for peer in range(nnodes)
            if peer != node_rank
        ),
        names=Names(host, f"{host}.cluster.local", (address,)),
        environment={"NCCL_DEBUG": "WARN", "MASTER_ADDR": MASTER, "MASTER_PORT": str(PORT)},
        software=software(),
        code=Code((code_path(),), "b" * 64, {"torch": "2.9.0", "numpy": "2.1.0"}),
        gpus=tuple(
            Gpu(
                index,
                "NVIDIA H100 80GB HBM3",
                f"GPU-{host}-{index}",
                f"0000:{index:02x}:00.0",
                80 << 30,
                healthy_state(index),
            )
            for index in range(8)
        ),
        gpu_driver=GpuDriver("570.86.15", "12.8", 0.4),
        gpu_log=GpuLog("/dev/kmsg", ()),
        gpu_work=tuple(GpuWork(index, "ok", f"GPU-{host}-{index}", 3.1) for index in range(8)),
        torch_gpus=TorchGpus(8, ("sm_80", "sm_90", "compute_90")),
        limits=limits(),
        nccl=nccl_choice(answer(address, "eth0")),
        link_counters=(LinkCounters("eth0", {"carrier_changes": 2}, {"carrier_changes": 2}),),
        master=master_path(node_rank, nnodes),
        clock=Clock(True, 1200, "tsc"),
        paths=tuple(path_fact(purpose) for purpose in ("data", "code", "shared")),
        checkpoints=(),
        mesh=None,
    )
