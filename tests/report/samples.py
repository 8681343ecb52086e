"""Reports as large and as full as real ones: every section of a page, at 2 and at 1,000 nodes."""

from __future__ import annotations

import random

from msgspec.structs import replace

from ncclcheck.model.bench import BenchPlan, Comparison, Op, Point, RankFailure, RankTime, TimeUs, Variant
from ncclcheck.model.benchmarks.ceiling import Ceiling
from ncclcheck.model.finding import Evidence, Finding, Fix
from ncclcheck.model.report import BenchReport, Report
from ncclcheck.model.snapshot import Coverage, Probe, Silent
from tests.builders import cluster
from tests.fact_builders import address_of, host_of, some
from tests.probe_builders import timed_probes
from tests.report.reports import ADVICE, check_run, found, report

SIZES = tuple(1 << power for power in range(20, 30))
_OPS: tuple[Op, ...] = ("all_reduce", "all_gather")


_MADE = 8  # nodes that the real builder makes a report of; the others are like them


def nodes_like(made: Report, nnodes: int) -> Report:
    """The report with so many nodes in all, each like one of those that were made, but with its own name and place."""
    entries, chosen = [], []
    for rank in range(nnodes):
        node, entry = made.nodes[rank % _MADE], made.nccl[rank % _MADE]
        facts = node.facts
        if facts and rank % 97 == 5:
            facts = replace(facts, software=replace(some(facts.software), torch="2.5.1"))
        entries.append(replace(node, host=host_of(rank), node_rank=rank, facts=facts))
        address = f"10.0.{rank // 250}.{rank % 250 + 1}"
        chosen.append(replace(entry, host=host_of(rank), address=address))
    return replace(made, nodes=(*entries, *made.nodes[_MADE:]), nccl=tuple(chosen))


def sampled_probes(nnodes: int) -> tuple[tuple[Probe, ...], Coverage]:
    """What is tried between many nodes: a few partners of each."""
    shifts = tuple(dict.fromkeys((1, 2, nnodes // 3, nnodes // 2, nnodes - 1)))
    pairs = [(rank, (rank + shift) % nnodes) for shift in shifts for rank in range(nnodes) if shift]
    probes = tuple(_tried(kind, *pair) for kind in ("tcp", "mtu") for pair in pairs)
    coverage = Coverage(len(pairs), nnodes * (nnodes - 1), "ring, a random graph, and node 0 to all")
    return probes + timed_probes(nnodes), coverage


def _tried(kind: str, source: int, target: int) -> Probe:
    is_blocked = target % 211 == 7 and source % 2
    outcome = "filtered" if is_blocked else "ok"
    port = 40000 + target % 20000
    return Probe(kind, host_of(source), host_of(target), "eth0", address_of(target % 250), port, outcome)  # type: ignore[arg-type]


def bench(nnodes: int, per_node: int, *, seed: int = 3, late_us: float = 60.0) -> BenchReport:
    """Curves with noise, one rank that comes late by that much, and a rank that died."""
    rng = random.Random(seed)  # noqa: S311 (the same pictures every time)
    points = tuple(
        _point(op, size, (nnodes * per_node, per_node), late_us, rng) for op in _OPS for size in SIZES
    )
    plan = BenchPlan("nccl", _OPS, SIZES, "float32", 5, None, 20.0, True)
    failure = RankFailure(
        1, host_of(0), "died", "all_gather 512M, iteration 3", "signal 9: out of memory?", 4.2
    )
    return BenchReport(
        backend="nccl",
        world_size=nnodes * per_node,
        nodes=nnodes,
        plan=plan,
        transport="IB mlx5_0:1",
        points=points,
        links=("node01 to node02: 370 Gbit/s",),
        failures=(failure,),
        ceilings=(Ceiling("all_reduce", 390.0, 400.0, "8 cards of 400 Gbit/s each", "link-speed", 0.95),),
        remarks=("the ceiling of all_gather is not known: no link speed of node02",),
    )


def _point(op: Op, size: int, shape: tuple[int, int], late_us: float, rng: random.Random) -> Point:
    ranks, per_node = shape
    base = 30 + size / (380e3 if op == "all_reduce" else 170e3)
    spread = sorted(base * (1 + abs(rng.gauss(0, 0.005))) for _ in range(20))
    late = [round(rng.random() * late_us / 20, 3) for _ in range(ranks)]
    late[ranks - 2] += late_us
    busbw = size / base / 1e3
    return Point(
        op=op,
        size_bytes=size,
        count=size // 4,
        dtype="float32",
        iters=20,
        time_us=TimeUs(sum(spread) / 20, spread[0], spread[10], spread[18], None, spread[-1]),
        first_us=base * 3,
        algbw_gb_s=busbw * 0.55,
        busbw_gb_s=busbw,
        wrong=0,
        unstable="its median is only known to 9 %" if size == 1 << 21 and late_us else None,
        ranks=tuple(
            RankTime(
                rank,
                host_of(rank // per_node),
                late[rank],
                round(base + late[rank], 3),
                late_us / 5 if rank == ranks - 2 else 0.0,
            )
            for rank in range(ranks)
        ),
    )


def calm(per_node: int, *, seed: int = 3) -> BenchReport:
    """A benchmark of two nodes in which nobody is late."""
    return bench(2, per_node, seed=seed, late_us=0.0)


def _times(rng: random.Random, mean: float, spread: float) -> tuple[float, ...]:
    return tuple(rng.gauss(mean, spread) for _ in range(9))


def comparison(nnodes: int) -> Comparison:
    """As-is over a slow interface, advised over a fast one."""
    rng = random.Random(5)  # noqa: S311 (the same pictures every time)
    hosts = [host_of(rank) for rank in range(nnodes)]
    return Comparison(
        backend="gloo",
        op="all_reduce",
        size_bytes=1 << 24,
        world_size=nnodes,
        rounds=9,
        as_is=Variant({}, dict.fromkeys(hosts, ("ens3", "10.0.0.1")), _times(rng, 52000, 900), 0.31),
        advised=Variant(
            {host: {"NCCL_SOCKET_IFNAME": "=eth0"} for host in hosts},
            dict.fromkeys(hosts, ("eth0", "10.1.0.1")),
            _times(rng, 9100, 350),
            1.84,
        ),
        speedup=5.7,
        speedup_low=5.5,
        speedup_high=5.9,
        verdict="faster",
    )  # fmt: skip


def full_report(nnodes: int, per_node: int = 2) -> Report:
    """A failed run with everything in it that a page can show; `nnodes` is 2, or 8 and more."""
    silent = Silent(host_of(nnodes), nnodes, "join", 30.0)
    snapshot = replace(
        cluster(min(nnodes, _MADE)), silent=(silent,), comparison=comparison(min(nnodes, _MADE))
    )
    runs = [
        found(_silent_finding(silent)),
        found(*_mtu_findings(nnodes)),
        found(_torch_finding(nnodes)),
        found(
            Finding(
                "info", "NCCL_DEBUG=INFO makes large logs", (host_of(0),), code="NC603", slug="env-harmful"
            )
        ),
        check_run("gpu-count", "unknown", "gpus of node01: NVML did not answer in 10 s", code="NC401"),
        check_run("pcie-acs", "crashed", "KeyError: 'acs'", code="NC409"),
        check_run("fabric-manager", "not_applicable", "no NVSwitch", code="NC407"),
        *(check_run(slug, code=f"NC2{number:02}") for number, slug in enumerate(_PASSED, 20)),
    ]
    made = report(runs, snapshot, command="run", advice=ADVICE, elapsed_s=41.7)
    if nnodes > _MADE:
        probes, coverage = sampled_probes(nnodes)
        made = replace(nodes_like(made, nnodes), probes=probes, coverage=coverage)
    return replace(made, bench=bench(nnodes, per_node))


_PASSED = (
    "peer-filtered",
    "peer-refused",
    "address-duplicate",
    "interface-slow",
    "route-asymmetric",
    "latency-outlier",
)


def _silent_finding(silent: Silent) -> Finding:
    fix = Fix("log in and look whether the agent runs", (f"ssh {silent.host} pgrep -af ncclcheck",))
    text = f"{silent.host} never joined: nothing arrived from it in 30 s"
    return Finding("error", text, (silent.host,), (), (fix,), "NC101", "node-silent")


def _mtu_findings(nnodes: int) -> list[Finding]:
    hosts = tuple(host_of(rank) for rank in range(nnodes) if rank % 9 == 1)
    fix = Fix(
        "give every node the same MTU, also the switch ports between them",
        ("ip link set dev eth0 mtu 9000",),
        {"NCCL_SOCKET_IFNAME": "=eth0"},
        "the interface is down for a moment: an ssh session over it may hang",
    )
    evidence = tuple(
        Evidence((host,), "MTU of eth0", "1500", "9000", "/sys/class/net/eth0/mtu") for host in hosts
    )
    text = "2 different MTUs on eth0: 9000 bytes to these nodes are lost, so the first large all-reduce hangs"
    return [Finding("error", text, hosts, evidence, (fix,), "NC213", "mtu-differs")]


def _torch_finding(nnodes: int) -> Finding:
    hosts = tuple(host_of(rank) for rank in range(nnodes) if rank % 97 == 5) or (host_of(1),)
    evidence = (Evidence(hosts, "torch", "2.5.1", "2.6.0", "importlib.metadata"),)
    fix = Fix("install torch 2.6.0")
    return Finding(
        "warning", "another torch than on most nodes", hosts, evidence, (fix,), "NC501", "version-differs"
    )
