"""Saved runs of thousands of nodes, as a real run of that size leaves them: a sample of the pairs is probed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ncclcheck.measure.links.rounds import plan_rounds
from ncclcheck.measure.links.schedule import plan_pairs
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile, NodeFacts, Route
from ncclcheck.model.report import SCHEMA_VERSION, Tool
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Coverage, Node, Probe, Silent, Snapshot
from tests.fact_builders import (
    MASTER,
    PORT,
    answer,
    docker0,
    interface,
    launch,
    limits,
    loopback,
    nccl_choice,
    node_facts,
    software,
    some,
)
from tests.hardware_builders import healthy_counters, healthy_kernel, healthy_pci, healthy_rdma, ib_ports
from tests.probe_builders import timed_probe

Kind: TypeAlias = Literal["healthy", "broken", "environment"]
KINDS: tuple[Kind, ...] = ("healthy", "broken", "environment")
MANY_VARIABLES = 40_000
_BROKEN_EVERY = 100
_PACKAGES = 250
_NO_FILE = Missing("absent", "No such file or directory")
_NO_FILES = (NcclConfigFile("/root/.nccl.conf", _NO_FILE), NcclConfigFile("/etc/nccl.conf", _NO_FILE))


def host_of(rank: int) -> str:
    """node00001 is node rank 0."""
    return f"node{rank + 1:05d}"


def address_of(rank: int) -> str:
    """The address of eth0 of a node, all in 10.0.0.0/8."""
    return f"10.{(rank + 1) >> 16}.{(rank + 1) >> 8 & 255}.{(rank + 1) & 255}"


def large_run(nnodes: int, kind: Kind) -> Saved:
    """A run of so many nodes: all healthy, 1 % broken in various ways, or one with very many variables."""
    snapshot = _healthy(nnodes)
    if kind == "broken":
        addresses = cycle(_WAYS)
        for rank in range(_BROKEN_EVERY // 2, nnodes, _BROKEN_EVERY):
            snapshot = next(addresses)(snapshot, rank)
    if kind == "environment":
        variables = {f"NCCL_VARIABLE_{number}": str(number) for number in range(MANY_VARIABLES)}
        facts = snapshot.nodes[nnodes // 2].facts
        snapshot = _with(snapshot, nnodes // 2, environment={**some(facts.environment), **variables})
    return Saved(
        schema_version=SCHEMA_VERSION,
        kind="ncclcheck-snapshot",
        tool=Tool("ncclcheck", "0.1.0"),
        command="preflight",
        created="2026-01-01T00:00:00+00:00",
        elapsed_s=20.0,
        interrupted=False,
        snapshot=snapshot,
    )


def _healthy(nnodes: int) -> Snapshot:
    plan = plan_pairs(nnodes)
    peers: list[list[int]] = [[] for _ in range(nnodes)]
    for source, target in plan.pairs:
        peers[source].append(target)
    return Snapshot(
        nodes=tuple(Node(host_of(rank), rank, _facts(rank, nnodes, peers[rank])) for rank in range(nnodes)),
        claims=tuple(launch(rank, nnodes) for rank in range(nnodes)),
        claim_hosts=tuple(host_of(rank) for rank in range(nnodes)),
        probes=_probes(nnodes, plan.pairs),
        coverage=Coverage(len(plan.pairs), plan.possible, plan.scheme),
    )


def _facts(rank: int, nnodes: int, peers: list[int]) -> NodeFacts:
    host, address = host_of(rank), address_of(rank)
    facts = node_facts(rank, 1)
    variables = {
        "OMP_NUM_THREADS": "8",
        "NCCL_DEBUG_SUBSYS": "INIT,NET",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
    }
    packages = {f"package-{number}": f"{number}.1.0" for number in range(_PACKAGES)}
    return replace(
        facts,
        launch=launch(rank, nnodes),
        interfaces=(loopback(), interface("eth0", f"{address}/8"), docker0()),
        routes=tuple(Route(address_of(peer), host_of(peer), address, "eth0") for peer in peers),
        names=replace(some(facts.names), hostname=host, fqdn=f"{host}.cluster.local", addresses=(address,)),
        environment={"NCCL_DEBUG": "WARN", "MASTER_ADDR": MASTER, "MASTER_PORT": str(PORT), **variables},
        code=replace(some(facts.code), packages=packages),
        gpus=tuple(replace(gpu, uuid=f"GPU-{host}-{number}") for number, gpu in enumerate(some(facts.gpus))),
        gpu_work=tuple(
            replace(work, uuid=f"GPU-{host}-{number}") for number, work in enumerate(some(facts.gpu_work))
        ),
        nccl=replace(nccl_choice(answer(address, "eth0")), config_files=_NO_FILES),
        master=replace(
            some(facts.master),
            source_address=address,
            is_local=rank == 0,
            outcome="answered" if rank else "serving",
        ),
        rdma=healthy_rdma(
            *(
                replace(port, lid=8 * rank + number, node_guid=f"a088:c203:{rank:04x}:{number:04x}")
                for number, port in enumerate(ib_ports())
            )
        ),
        pci=healthy_pci(),
        kernel=healthy_kernel(),
        rdma_counters=healthy_counters(),
        paths=(),
    )


def _probes(nnodes: int, pairs: tuple[tuple[int, int], ...]) -> tuple[Probe, ...]:
    shifts = plan_rounds(nnodes, 1).shifts
    rounds = [(source, (source + shift) % nnodes) for shift in shifts for source in range(nnodes)]
    reach = [
        Probe(
            kind, host_of(source), host_of(target), "eth0", address_of(target), 30000 + target % 30000, "ok"
        )
        for kind in ("tcp", "mtu")
        for source, target in pairs
    ]
    latencies = [timed_probe("latency", *pair, 25.0 + number % 3) for number, pair in enumerate(rounds)]
    rates = [
        timed_probe("bandwidth", *pair, 94.0 * (1 - 0.01 * (number % 4)))
        for number, pair in enumerate(rounds)
    ]
    clocks = [timed_probe("clock", rank, (rank + 1) % nnodes, 3.0, least=50.0) for rank in range(nnodes)]
    return (*reach, *(_named(made) for made in (*latencies, *rates, *clocks)))


def _named(made: Probe) -> Probe:
    """Return the probe with the names and addresses of a large run."""
    source, target = (int(host.removeprefix("node")) - 1 for host in (made.from_host, made.to_host))
    measured = None if made.measured is None else replace(made.measured, source_address=address_of(source))
    return replace(
        made,
        from_host=host_of(source),
        to_host=host_of(target),
        address=address_of(target),
        measured=measured,
    )


def _with(snapshot: Snapshot, rank: int, **sections: object) -> Snapshot:
    nodes = list(snapshot.nodes)
    at = next(index for index, node in enumerate(nodes) if node.node_rank == rank)
    nodes[at] = replace(nodes[at], facts=replace(nodes[at].facts, **sections))
    return replace(snapshot, nodes=tuple(nodes))


def _facts_of(snapshot: Snapshot, rank: int) -> NodeFacts:
    return next(node.facts for node in snapshot.nodes if node.node_rank == rank)


def _other_torch(snapshot: Snapshot, rank: int) -> Snapshot:
    return _with(snapshot, rank, software=software(torch="2.5.1", nccl="2.21.5"))


def _small_mtu(snapshot: Snapshot, rank: int) -> Snapshot:
    interfaces = (loopback(), interface("eth0", f"{address_of(rank)}/8", mtu=1500), docker0())
    return _with(snapshot, rank, interfaces=interfaces)


def _no_gpu(snapshot: Snapshot, rank: int) -> Snapshot:
    return _with(snapshot, rank, gpus=some(_facts_of(snapshot, rank).gpus)[:7])


def _unread_gpus(snapshot: Snapshot, rank: int) -> Snapshot:
    return _with(snapshot, rank, gpus=Missing("timeout", "NVML did not answer in 10 s"))


def _other_variable(snapshot: Snapshot, rank: int) -> Snapshot:
    environment = {
        **some(_facts_of(snapshot, rank).environment),
        "NCCL_ALGO": "Rign",
        "NCCL_P2P_DISABLE": "1",
    }
    return _with(snapshot, rank, environment=environment)


def _low_limits(snapshot: Snapshot, rank: int) -> Snapshot:
    return _with(snapshot, rank, limits=limits(nofile=256, memlock_kib=64))


def _wrong_interface(snapshot: Snapshot, rank: int) -> Snapshot:
    return _with(snapshot, rank, nccl=nccl_choice(answer("172.17.0.1", "docker0")))


def _port_down(snapshot: Snapshot, rank: int) -> Snapshot:
    section = some(_facts_of(snapshot, rank).rdma)
    return _with(
        snapshot,
        rank,
        rdma=replace(section, ports=(replace(section.ports[0], state="DOWN"), *section.ports[1:])),
    )


def _slow_pcie(snapshot: Snapshot, rank: int) -> Snapshot:
    section = some(_facts_of(snapshot, rank).pci)
    devices = (*section.devices[:-1], replace(section.devices[-1], link_width=4))
    return _with(snapshot, rank, pci=replace(section, devices=devices))


def _wrong_route(snapshot: Snapshot, rank: int) -> Snapshot:
    routes = tuple(
        replace(route, interface="docker0", source_address="172.17.0.1")
        for route in some(_facts_of(snapshot, rank).routes)
    )
    return _with(snapshot, rank, routes=routes)


def _filtered(snapshot: Snapshot, rank: int) -> Snapshot:
    probes = tuple(
        replace(probe, outcome="filtered")
        if probe.to_host == host_of(rank) and probe.kind == "tcp"
        else probe
        for probe in some(snapshot.probes)
    )
    return replace(snapshot, probes=probes)


def _filtered_pair(snapshot: Snapshot, rank: int) -> Snapshot:
    pair = (host_of(rank), host_of(rank + 1))
    probes = tuple(
        replace(probe, outcome="filtered") if (probe.from_host, probe.to_host) == pair else probe
        for probe in some(snapshot.probes)
    )
    return replace(snapshot, probes=probes)


def _slow_link(snapshot: Snapshot, rank: int) -> Snapshot:
    slow = {"latency": 400.0, "bandwidth": 9.0, "clock": 3_000_000.0}
    probes = tuple(
        replace(probe, value=slow[probe.kind])
        if probe.to_host == host_of(rank) and probe.kind in slow
        else probe
        for probe in some(snapshot.probes)
    )
    return replace(snapshot, probes=probes)


def _gone(snapshot: Snapshot, rank: int) -> Snapshot:
    """The node never came: it is in no list but that of the silent."""
    host = host_of(rank)
    claims = [pair for pair in zip(snapshot.claims, snapshot.claim_hosts, strict=True) if pair[1] != host]
    return replace(
        snapshot,
        nodes=tuple(node for node in snapshot.nodes if node.host != host),
        silent=(*snapshot.silent, Silent(host, rank, "join", 30.0)),
        claims=tuple(claim for claim, _ in claims),
        claim_hosts=tuple(name for _, name in claims),
        probes=tuple(
            probe for probe in some(snapshot.probes) if host not in (probe.from_host, probe.to_host)
        ),
    )


_WAYS: tuple[Callable[[Snapshot, int], Snapshot], ...] = (
    _other_torch,
    _small_mtu,
    _no_gpu,
    _unread_gpus,
    _other_variable,
    _low_limits,
    _wrong_interface,
    _port_down,
    _slow_pcie,
    _wrong_route,
    _filtered,
    _filtered_pair,
    _slow_link,
    _gone,
)
