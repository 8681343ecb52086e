"""A healthy cluster as a Snapshot of pure Structs, and functions that break one thing of it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import permutations
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from ncclcheck.measure.rounds import plan_rounds
from ncclcheck.model.bench import BenchPlan, BenchResult, Point, RankTime, TimeUs
from ncclcheck.model.demands import Baseline, BaselinePoint, BenchDemands, Floor
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
from ncclcheck.model.hardware import NcclLibrary, NetPlugin
from ncclcheck.model.launch import Launch
from ncclcheck.model.snapshot import (
    Coverage,
    Knock,
    Measured,
    Node,
    Probe,
    ProbeKind,
    ProbeOutcome,
    SharedView,
    Silent,
    Snapshot,
)
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


# --- parts of a healthy node ---------------------------------------------------------------------------------


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
        master=master_path(node_rank, nnodes),
        clock=Clock(True, 1200, "tsc"),
        paths=tuple(path_fact(purpose) for purpose in ("data", "code", "shared")),
    )


# --- the cluster -----------------------------------------------------------------------------------------------


def cluster(nnodes: int = 4) -> Snapshot:
    """A healthy cluster: node01 .. nodeNN on 10.0.0.N, everybody met, reached and agreed with everybody."""
    nodes = tuple(Node(host_of(rank), rank, node_facts(rank, nnodes)) for rank in range(nnodes))
    probes = tuple(
        probe(kind, source, target) for kind in _PROBED for source, target in permutations(range(nnodes), 2)
    )
    probes += timed_probes(nnodes) + clock_probes(nnodes)
    pairs = nnodes * (nnodes - 1)
    hosts = tuple(host_of(rank) for rank in range(nnodes))
    return Snapshot(
        nodes=nodes,
        claims=tuple(launch(rank, nnodes) for rank in range(nnodes)),
        claim_hosts=tuple(host_of(rank) for rank in range(nnodes)),
        probes=probes,
        coverage=Coverage(pairs, pairs, "all pairs"),
        shared=tuple(SharedView(host, "/mnt/shared", None, hosts, 0.1) for host in hosts),
    )


_PROBED: tuple[ProbeKind, ...] = ("tcp", "mtu")


def probe(kind: ProbeKind, source: int, target: int, outcome: ProbeOutcome = "ok") -> Probe:
    """One attempt from one node rank to eth0 of another."""
    return Probe(kind, host_of(source), host_of(target), "eth0", address_of(target), 40000 + target, outcome)


def timed_probes(
    nnodes: int, name: str = "eth0", network: str = "10.0.0", gbit_s: float = 94.0
) -> tuple[Probe, ...]:
    """The measured round trips and transfers of one network, whose addresses are network.1 and so on."""
    shifts = plan_rounds(nnodes, 1).shifts if nnodes > 1 else ()
    pairs = [(source, (source + shift) % nnodes) for shift in shifts for source in range(nnodes)]
    return tuple(
        timed_probe("latency", source, target, 25.0 + number % 3, name, network)
        for number, (source, target) in enumerate(dict.fromkeys(pairs))
    ) + tuple(
        timed_probe("bandwidth", source, target, gbit_s * (1 - 0.01 * (number % 4)), name, network)
        for number, (source, target) in enumerate(pairs)
    )


def clock_probes(nnodes: int, **ahead_us: float) -> tuple[Probe, ...]:
    """The compared clocks of neighbours, of which those named are that far ahead of the right time."""
    pairs = [(source, (source + 1) % nnodes) for source in range(nnodes) if nnodes > 1]
    return tuple(
        timed_probe(
            "clock",
            source,
            target,
            ahead_us.get(host_of(target), 0.0) - ahead_us.get(host_of(source), 0.0) + 3.0,
            least=50.0,
        )
        for source, target in pairs
    )


def timed_probe(
    kind: ProbeKind,
    source: int,
    target: int,
    value: float,
    name: str = "eth0",
    network: str = "10.0.0",
    **changes: Any,
) -> Probe:
    """One measurement from one node rank to another, of which nothing but the network was the limit."""
    measured = Measured(4, 0.1, f"{network}.{source + 1}", cpu_share=0.3, core_share=0.4)
    if kind == "latency":
        measured = Measured(30, 0.001, f"{network}.{source + 1}", least=value - 1)
    unit = "Gbit/s" if kind == "bandwidth" else "us"
    return replace(
        probe(kind, source, target),
        interface=name,
        address=f"{network}.{target + 1}",
        value=value,
        unit=unit,
        measured=replace(measured, **changes),
    )


def node(snapshot: Snapshot, host: str) -> Node:
    """The node of that name."""
    return next(one for one in snapshot.nodes if one.host == host)


def with_facts(snapshot: Snapshot, host: str, **sections: Any) -> Snapshot:
    """The snapshot in which `host` says something else in those sections."""
    nodes = tuple(
        replace(one, facts=replace(one.facts, **sections)) if one.host == host else one
        for one in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def everywhere(snapshot: Snapshot, **sections: Any) -> Snapshot:
    """The snapshot in which every node says the same in those sections."""
    for one in snapshot.nodes:
        snapshot = with_facts(snapshot, one.host, **sections)
    return snapshot


def without(snapshot: Snapshot, host: str, section: str, missing: Missing = GONE) -> Snapshot:
    """The snapshot in which a section of `host` could not be read."""
    return with_facts(snapshot, host, **{section: missing})


def with_environment(snapshot: Snapshot, host: str, **changes: str | None) -> Snapshot:
    """The snapshot with variables set (or, with None, not set) on one node. The library is not asked again."""
    environment = {**some(node(snapshot, host).facts.environment), **changes}
    kept = {name: value for name, value in environment.items() if value is not None}
    return with_facts(snapshot, host, environment=kept)


def with_choice(snapshot: Snapshot, host: str, name: str | None, address: str | None) -> Snapshot:
    """The snapshot in which NCCL, asked on `host`, chose that interface (None: it found none)."""
    return with_facts(snapshot, host, nccl=nccl_choice(answer(address, name)))


def with_interfaces(snapshot: Snapshot, host: str, *interfaces: Interface) -> Snapshot:
    """The snapshot in which `host` has lo and these interfaces."""
    return with_facts(snapshot, host, interfaces=(loopback(), *interfaces))


def with_software(snapshot: Snapshot, host: str, **changes: Any) -> Snapshot:
    """The snapshot in which one node has other versions."""
    return with_facts(snapshot, host, software=software(**changes))


def with_master(snapshot: Snapshot, host: str, outcome: MasterOutcome, **changes: Any) -> Snapshot:
    """The snapshot in which a node's way to the master ended that way."""
    path = master_path(node(snapshot, host).node_rank, snapshot.nnodes, outcome)
    return with_facts(snapshot, host, master=replace(path, **changes))


def with_outcome(
    snapshot: Snapshot,
    outcome: ProbeOutcome,
    directions: Iterable[tuple[str, str]],
    *,
    kind: ProbeKind = "tcp",
) -> Snapshot:
    """The snapshot in which the probes from and to those hosts ended that way."""
    changed = set(directions)
    return replace(
        snapshot,
        probes=tuple(
            replace(one, outcome=outcome)
            if one.kind == kind and (one.from_host, one.to_host) in changed
            else one
            for one in some(snapshot.probes)
        ),
    )


def both_ways(first: str, second: str) -> tuple[tuple[str, str], ...]:
    """The two directions of a pair."""
    return (first, second), (second, first)


def into(snapshot: Snapshot, host: str) -> tuple[tuple[str, str], ...]:
    """Every direction that ends at `host`."""
    return tuple((one.host, host) for one in snapshot.nodes if one.host != host)


def out_of(snapshot: Snapshot, host: str) -> tuple[tuple[str, str], ...]:
    """Every direction that starts at `host`."""
    return tuple((host, one.host) for one in snapshot.nodes if one.host != host)


def with_silent(snapshot: Snapshot, host: str, outcome: MasterOutcome | None = None) -> Snapshot:
    """The snapshot in which `host` never came; with an outcome, it told node 0 why by datagram."""
    rank = node(snapshot, host).node_rank
    knock: Fact[Knock] = Missing("absent", "no word from it")
    if outcome is not None:
        knock = Knock(host, rank, master_path(rank, snapshot.nnodes, outcome))
    claims = [
        (one, name) for one, name in zip(snapshot.claims, snapshot.claim_hosts, strict=True) if name != host
    ]
    return replace(
        snapshot,
        nodes=tuple(one for one in snapshot.nodes if one.host != host),
        silent=(*snapshot.silent, Silent(host, rank, "join", 30.0, knock)),
        claims=tuple(one for one, _ in claims),
        claim_hosts=tuple(name for _, name in claims),
        probes=tuple(one for one in some(snapshot.probes) if host not in (one.from_host, one.to_host)),
        coverage=Coverage(*2 * ((len(snapshot.nodes) - 1) * (len(snapshot.nodes) - 2),), "all pairs"),
    )


def seen_alone(snapshot: Snapshot, host: str) -> Snapshot:
    """What `host` sees when it did not meet the others."""
    return Snapshot(nodes=(node(snapshot, host),), viewpoint="one-node")


# --- a benchmark -------------------------------------------------------------------------------------------------


def bench_point(
    size_bytes: int, late_us: Iterable[float], time_us: float = 1000.0, wrong: int | None = 0
) -> Point:
    """A point in which rank i, on node i, typically entered late_us[i] after the first."""
    return Point(
        op="all_reduce",
        size_bytes=size_bytes,
        count=size_bytes // 4,
        dtype="float32",
        iters=20,
        time_us=TimeUs(time_us, time_us, time_us, time_us, None, time_us),
        first_us=2 * time_us,
        algbw_gb_s=1.0,
        busbw_gb_s=1.5,
        wrong=wrong,
        unstable=None,
        ranks=tuple(RankTime(rank, host_of(rank), late, time_us) for rank, late in enumerate(late_us)),
    )


def bench_result(*points: Point, **changes: Any) -> BenchResult:
    """A benchmark of gloo ranks, one per node, with those points."""
    measured = points or tuple(bench_point(1 << size, (3.0, 1.0, 4.0, 2.0)) for size in (20, 21, 22))
    plan = BenchPlan("gloo", ("all_reduce",), (1 << 20, 1 << 21, 1 << 22), "float32", 5, None, 20.0, True)
    world_size = len(measured[0].ranks)
    return replace(BenchResult("gloo", world_size, world_size, plan, "tcp eth0", measured), **changes)


def bench_demands(result: BenchResult) -> BenchDemands:
    """A floor that the benchmark reaches, and itself as baseline."""
    points = tuple(
        BaselinePoint(one.op, one.size_bytes, one.dtype, one.iters, one.busbw_gb_s, one.time_us)
        for one in result.points
    )
    baseline = Baseline(
        "last.json",
        "2026-01-01T00:00:00+00:00",
        result.backend,
        result.world_size,
        result.nodes,
        result.transport,
        points,
    )
    return BenchDemands((Floor(1.0),), baseline)


def with_bench(snapshot: Snapshot, *points: Point, **changes: Any) -> Snapshot:
    """The snapshot with a benchmark of those points, or a healthy one, and demands that it meets."""
    result = bench_result(*points, **changes)
    return replace(snapshot, bench=result, bench_demands=bench_demands(result))
