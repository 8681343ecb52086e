"""A healthy cluster as a Snapshot of pure Structs, and functions that break one thing of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import Any

from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import (
    Interface,
    MasterOutcome,
)
from ncclcheck.model.snapshot import (
    Coverage,
    Knock,
    LostFirstNode,
    Node,
    ProbeKind,
    ProbeOutcome,
    SharedView,
    Silent,
    Snapshot,
)
from tests.fact_builders import (
    GONE,
    answer,
    host_of,
    launch,
    loopback,
    master_path,
    nccl_choice,
    node_facts,
    software,
    some,
)
from tests.probe_builders import clock_probes, probe, timed_probes


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


def node(snapshot: Snapshot, host: str) -> Node:
    """The node of that name."""
    return next(node for node in snapshot.nodes if node.host == host)


def with_facts(snapshot: Snapshot, host: str, **sections: Any) -> Snapshot:
    """The snapshot in which `host` says something else in those sections."""
    nodes = tuple(
        replace(node, facts=replace(node.facts, **sections)) if node.host == host else node
        for node in snapshot.nodes
    )
    return replace(snapshot, nodes=nodes)


def everywhere(snapshot: Snapshot, **sections: Any) -> Snapshot:
    """The snapshot in which every node says the same in those sections."""
    for node in snapshot.nodes:
        snapshot = with_facts(snapshot, node.host, **sections)
    return snapshot


def without(snapshot: Snapshot, host: str, section: str, missing: Missing = GONE) -> Snapshot:
    """The snapshot in which a section of `host` could not be read."""
    return with_facts(snapshot, host, **{section: missing})


def with_environment(snapshot: Snapshot, host: str, **changes: str | None) -> Snapshot:
    """The snapshot with variables set (or, with None, not set) on one node. The library is not asked again."""
    environment = {**some(node(snapshot, host).facts.environment), **changes}
    variables = {name: value for name, value in environment.items() if value is not None}
    return with_facts(snapshot, host, environment=variables)


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
            replace(probe, outcome=outcome)
            if probe.kind == kind and (probe.from_host, probe.to_host) in changed
            else probe
            for probe in some(snapshot.probes)
        ),
    )


def into(snapshot: Snapshot, host: str) -> tuple[tuple[str, str], ...]:
    """Every direction that ends at `host`."""
    return tuple((node.host, host) for node in snapshot.nodes if node.host != host)


def out_of(snapshot: Snapshot, host: str) -> tuple[tuple[str, str], ...]:
    """Every direction that starts at `host`."""
    return tuple((host, node.host) for node in snapshot.nodes if node.host != host)


def with_silent(snapshot: Snapshot, host: str, outcome: MasterOutcome | None = None) -> Snapshot:
    """The snapshot in which `host` never came; with an outcome, it told node 0 why by datagram."""
    rank = node(snapshot, host).node_rank
    knock: Fact[Knock] = Missing("absent", "no word from it")
    if outcome is not None:
        knock = Knock(host, rank, master_path(rank, snapshot.nnodes, outcome))
    claims = [
        (claim, name)
        for claim, name in zip(snapshot.claims, snapshot.claim_hosts, strict=True)
        if name != host
    ]
    return replace(
        snapshot,
        nodes=tuple(node for node in snapshot.nodes if node.host != host),
        silent=(*snapshot.silent, Silent(host, rank, "join", 30.0, knock)),
        claims=tuple(claim for claim, _ in claims),
        claim_hosts=tuple(name for _, name in claims),
        probes=tuple(
            probe for probe in some(snapshot.probes) if host not in (probe.from_host, probe.to_host)
        ),
        coverage=Coverage(*2 * ((len(snapshot.nodes) - 1) * (len(snapshot.nodes) - 2),), "all pairs"),
    )


def seen_alone(snapshot: Snapshot, host: str) -> Snapshot:
    """What `host` sees when it did not meet the others."""
    return Snapshot(nodes=(node(snapshot, host),), viewpoint="one-node")


def left_alone(snapshot: Snapshot, host: str, when: str = "during the benchmark") -> Snapshot:
    """What `host` reports that had met node 0 and then lost it."""
    return replace(seen_alone(snapshot, host), lost_first_node=LostFirstNode("node01", when))
