"""Clusters with more than one network, and the answers to a proposal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

from msgspec.structs import replace

from ncclcheck.advice.interface import propose
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, NcclAnswer, NcclChoice, NcclConfigFile
from ncclcheck.model.hardware import NetPlugin, RdmaPort
from ncclcheck.model.snapshot import Confirmation, Measured, Probe, ProbeOutcome, Snapshot
from ncclcheck.nccl.candidates import candidate_interfaces
from tests.builders import cluster, with_facts
from tests.fact_builders import answer, interface, loopback, software
from tests.nccl.hardware import rdma

NO_LIBRARY = Missing("absent", "no libnccl.so.2")
NO_PLUGIN = NetPlugin("libnccl-net.so", Missing("absent", "no such file"))


def unasked(*interfaces: Interface, **environment: str) -> dict[str, Any]:
    """The sections of a node without libnccl that has lo and these interfaces."""
    return {
        "interfaces": (loopback(), *interfaces),
        "environment": environment,
        "nccl": NcclChoice(NO_LIBRARY, (), True),
        "software": software(nccl=NO_LIBRARY, torch_nccl=NO_LIBRARY),
    }


def of_nodes(*sections: dict[str, Any]) -> Snapshot:
    """A cluster of these nodes, in which every candidate interface is probed and reached."""
    snapshot = cluster(len(sections))
    for node, changes in zip(snapshot.nodes, sections, strict=True):
        snapshot = with_facts(snapshot, node.host, **changes)
    probes = tuple(
        Probe("tcp", source.host, target.host, name, address, 40000, "ok")
        for source, target in permutations(snapshot.nodes, 2)
        for name, address in candidate_interfaces(target.facts)
    )
    return replace(snapshot, probes=probes)


def two_networks(count: int = 4, **environment: str) -> Snapshot:
    """Nodes with eth0 (10.0.0.x) and eth1 (10.0.1.x), without libnccl."""
    return of_nodes(*(two_interfaces(number, **environment) for number in range(1, count + 1)))


def two_interfaces(number: int, **environment: str) -> dict[str, Any]:
    """One of these nodes; its host name means its eth0."""
    return unasked(
        interface("eth0", f"10.0.0.{number}/24"),
        interface("eth1", f"10.0.1.{number}/24", index=3),
        **environment,
    )


def with_probes(snapshot: Snapshot, outcome: ProbeOutcome, **match: str) -> Snapshot:
    """The snapshot in which the TCP probes whose fields are as in `match` ended that way."""
    assert not isinstance(snapshot.probes, Missing)
    probes = tuple(
        replace(probe, outcome=outcome)
        if all(getattr(probe, name) == text for name, text in match.items())
        else probe
        for probe in snapshot.probes
    )
    return replace(snapshot, probes=probes)


def with_bandwidth(
    snapshot: Snapshot, cpu_share: float = 0.2, /, spread: float = 0.02, **gbit_s: float
) -> Snapshot:
    """The snapshot in which the bandwidth of every candidate of these names was measured between all nodes."""
    assert not isinstance(snapshot.probes, Missing)
    measured: list[Probe] = []
    for source, target in permutations(snapshot.nodes, 2):
        for name, address in candidate_interfaces(target.facts):
            if name in gbit_s:
                factor = 1 + spread * (len(measured) % 3 - 1)
                measured.append(
                    Probe(
                        "bandwidth",
                        source.host,
                        target.host,
                        name,
                        address,
                        40000,
                        "ok",
                        gbit_s[name] * factor,
                        "Gbit/s",
                        measured=Measured(4, 0.2, "10.0.0.1", cpu_share=cpu_share),
                    )
                )
    return replace(snapshot, probes=(*snapshot.probes, *measured))


def asked(snapshot: Snapshot, answers: Mapping[str, tuple[str, str]] | None = None) -> Snapshot:
    """The snapshot in which every node was asked under the first proposal and chose as intended, or as in `answers`."""
    (proposal,) = propose(snapshot)
    confirmations = []
    for host, env in proposal.env_by_host.items():
        name, address = (answers or {}).get(host, proposal.places[host])
        said: Fact[NcclAnswer] = answer(address, name)
        confirmations.append(Confirmation(host, env, said))
    return replace(snapshot, confirmations=tuple(confirmations))


def with_rdma(count: int, *ports: RdmaPort, version: str = "2.28.9", **environment: str) -> Snapshot:
    """Nodes with eth0, eth1 and these RDMA ports, of NCCL `version`, which could not be asked; without a plug-in."""
    parts = {
        "rdma": rdma(*ports),
        "software": software(nccl=version, torch_nccl=version),
        "nccl": NcclChoice(NO_LIBRARY, (), True, plugins=(NO_PLUGIN,)),
    }
    return of_nodes(*({**two_interfaces(number, **environment), **parts} for number in range(1, count + 1)))


def configured(snapshot: Snapshot, host: str, **settings: str) -> Snapshot:
    """The snapshot in which /etc/nccl.conf of the host says so."""
    nccl = next(node.facts.nccl for node in snapshot.nodes if node.host == host)
    assert not isinstance(nccl, Missing)
    files = (NcclConfigFile("/etc/nccl.conf", settings),)
    return with_facts(snapshot, host, nccl=replace(nccl, config_files=files))
