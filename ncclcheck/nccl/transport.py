"""What NCCL uses between nodes beyond the interface: network, ports with their GID, GPU distances, GPUDirect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.hardware import GpuNic, HcaChoice, RdmaPort
from ncclcheck.nccl import topology, versions
from ncclcheck.nccl.network import IB, SOCKET, Surroundings, choose_network
from ncclcheck.nccl.rdma import data_direct, fusion, gid, gpudirect, hca


class Transport(Struct, frozen=True):
    """`network` is None where NCCL `fails` or where it is not known: `network_reason` says it. `hcas`: those of IB."""

    network: str | None = None
    network_reason: str = ""
    hcas: tuple[HcaChoice, ...] = ()
    gpu_nic: tuple[GpuNic, ...] = ()
    gpudirect: str = ""
    fails: bool = False


def choose_transport(
    facts: NodeFacts, interfaces: Fact[tuple[str, ...]], environment: Mapping[str, str], version: str
) -> Transport:
    """Return what NCCL of `version` uses on this node in the effective `environment`.

    `interfaces` are those of NET/Socket (`socket_interface.network_interfaces`), Missing where no address is known.
    """
    plugins = facts.nccl if isinstance(facts.nccl, Missing) else facts.nccl.plugins
    choice = choose_network(Surroundings(facts.rdma, plugins, interfaces), environment, version)
    gpu_nic = distances(facts, environment, version)
    gids = [gid.choose_gid(port, environment, version) for port in choice.ports]
    return Transport(
        network=choice.network,
        network_reason=choice.reason
        + _devices(facts, choice.ports, environment, version)
        + _unknown_gids(choice.ports, gids),
        hcas=tuple(
            HcaChoice(port.device, port.port, gid_choice.index)
            for port, gid_choice in zip(choice.ports, gids, strict=True)
        ),
        gpu_nic=() if isinstance(gpu_nic, Missing) else gpu_nic,
        gpudirect=_gpudirect(facts, choice.network, choice.ports, environment, version),
        fails=choice.fails,
    )


def distances(
    facts: NodeFacts, environment: Mapping[str, str], version: str = versions.NEWEST
) -> Fact[tuple[GpuNic, ...]]:
    """Return the class of each GPU and RDMA device, used or not, as far as the PCI bus was read.

    Without those that data direct may bring nearer. Missing where a topology file decides them, as in many virtual
    machines, whose own bus has no switches.
    """
    if isinstance(facts.pci, Missing) or isinstance(facts.rdma, Missing):
        return ()
    if file := topology.file_before_sys(facts.pci, environment):
        return Missing("unsupported", f"NCCL takes it from {file}, which ncclcheck does not read")
    direct = {
        port.device
        for port in facts.rdma.ports
        if data_direct.is_possible(port, facts.pci, environment, version)
    }
    found = topology.gpu_nic(facts.pci, facts.rdma.ports)
    known = tuple(
        pair for pair in found if pair.nic not in direct or pair.distance in topology.BELOW_SWITCHES
    )
    if found and not known:
        return Missing("unsupported", "NCCL can reach them by data-direct functions of the cards")
    return known


def hca_words(hcas: Sequence[HcaChoice]) -> str:
    """Ports with their GID, those with the same index together: `mlx5_0:1, mlx5_1:1 (GID 3)`."""
    groups = groupby(hcas, key=lambda hca: hca.gid_index)
    return ", ".join(
        f"{', '.join(f'{choice.device}:{choice.port}' for choice in group)} "
        f"({'GID not known' if index is None else f'GID {index}'})"
        for index, group in groups
    )


def _devices(
    facts: NodeFacts, ports: Sequence[RdmaPort], environment: Mapping[str, str], version: str
) -> str:
    """How many network devices the ports are, where that is not simply one each."""
    if not ports[1:]:
        return ""
    places = {} if isinstance(facts.pci, Missing) else topology.positions(facts.pci)
    if not isinstance(facts.pci, Missing) and (file := topology.file_before_sys(facts.pci, environment)):
        environment = {**environment, topology.TOPOLOGY_FILE: file}
    devices = fusion.network_devices(ports, environment, version, places)
    if isinstance(devices, Missing):
        return f"; how many network devices they are is not known ({devices.detail})"
    merged = ["+".join(hca.name_of(port) for port in device) for device in devices if len(device) > 1]
    together = f", together {', '.join(merged)}" if merged else ""
    return (
        f"; {len(devices)} network devices{together}"
        if len(devices) > 1
        else f"; one network device{together}"
    )


def _unknown_gids(ports: Sequence[RdmaPort], gids: Sequence[gid.GidChoice]) -> str:
    """Why the GID of a port is not known, each reason once."""
    ports_of: dict[str, list[RdmaPort]] = {}
    for port, choice in zip(ports, gids, strict=True):
        if choice.index is None:
            ports_of.setdefault(choice.reason, []).append(port)
    return "".join(
        f"; the GID of {hca.names_of(members)} is not known: {why}" for why, members in ports_of.items()
    )


def _gpudirect(
    facts: NodeFacts,
    network: str | None,
    ports: Sequence[RdmaPort],
    environment: Mapping[str, str],
    version: str,
) -> str:
    if network == SOCKET:
        return "not possible: NET/Socket copies through host memory"
    if network != IB or isinstance(facts.rdma, Missing):
        return ""
    nvidia_open = facts.kernel if isinstance(facts.kernel, Missing) else facts.kernel.nvidia_open
    return gpudirect.describe(
        ports,
        distances(facts, environment, version),
        facts.rdma.peer_memory,
        nvidia_open,
        environment,
        version,
    )
