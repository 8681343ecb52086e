"""The RDMA ports that matter to a job: where a check of them starts, and how it names them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.hosts import named
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.finding import Evidence, NotApplicable, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.hardware import Rdma, RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import network, topology, versions
from ncclcheck.nccl.alike import kind_of_ports
from ncclcheck.nccl.gpus.job_gpus import gpus_without_nvml
from ncclcheck.nccl.number import number
from ncclcheck.nccl.prediction import effective_environment, known_version
from ncclcheck.nccl.rdma import hca

NATIVE = "InfiniBand"
ROCE = "Ethernet"
_MOST_EVIDENCE = 12


class PortOn(Struct, frozen=True):
    """A port of a host."""

    host: str
    port: RdmaPort

    @property
    def name(self) -> str:
        """As NCCL writes it: mlx5_0:1."""
        return hca.name_of(self.port)


class Surveyed(Struct, frozen=True):
    """A node whose RDMA devices were read, with what decides which of them NCCL takes."""

    host: str
    facts: NodeFacts
    rdma: Rdma
    environment: dict[str, str]
    version: str
    selected: tuple[RdmaPort, ...]  # that NET/IB would take if they were ACTIVE; none where it is not wanted
    active: tuple[RdmaPort, ...]  # of these, and the device can be opened as far as is known
    others: tuple[RdmaPort, ...]  # those of EFA, which their plug-in takes

    @property
    def is_switched_off(self) -> bool:
        """True if NCCL_IB_DISABLE or NCCL_NET=Socket says that NET/IB is not wanted."""
        return _is_switched_off(self.environment, self.version)


def _is_switched_off(environment: Mapping[str, str], version: str) -> bool:
    return (
        number(environment.get("NCCL_IB_DISABLE"), 0, version) != 0
        or environment.get("NCCL_NET", "").lower() == network.SOCKET.lower()
    )


class _Places(Struct, frozen=True):
    """Which ports of a node those of Surveyed are: the same ones on all nodes of a kind."""

    selected: tuple[int, ...]
    active: tuple[int, ...]
    others: tuple[int, ...]


def _places(rdma: Rdma, environment: Mapping[str, str], version: str) -> _Places:
    selected = [] if _is_switched_off(environment, version) else _selected(rdma, environment, version)
    return _Places(
        tuple(selected),
        tuple(place for place in selected if _is_active(rdma.ports[place], rdma)),
        tuple(place for place, port in enumerate(rdma.ports) if not is_verbs(port)),
    )


def _selected(rdma: Rdma, environment: Mapping[str, str], version: str) -> list[int]:
    """Return the ports that NCCL_IB_HCA keeps."""
    pattern = hca.parse(environment.get("NCCL_IB_HCA"), version)
    return [
        place
        for place, port in enumerate(rdma.ports)
        if is_verbs(port) and pattern.matches(port.device, port.port)
    ]


def _is_active(port: RdmaPort, rdma: Rdma) -> bool:
    return port.state == "ACTIVE" and not network.is_closed(port, rdma)


@once_per_subject
def surveyed(snapshot: Snapshot) -> tuple[Surveyed, ...]:
    """Every node whose RDMA devices and whose environment are known. A recorded machine has nothing set."""
    found = []
    known: dict[Hashable, _Places] = {}
    for node, rdma in snapshot.known("rdma"):
        environment = environment_of(node.facts)
        if not isinstance(environment, Missing):
            version = known_version(node.facts) or versions.NEWEST
            files = rdma.device_files, rdma.unusable_files
            kind = kind_of_ports(SameObject(rdma)), files, SameObject(environment), version
            places = known.get(kind)
            if places is None:
                places = known[kind] = _places(rdma, environment, version)
            ports = [
                tuple([rdma.ports[place] for place in part])
                for part in (places.selected, places.active, places.others)
            ]
            found.append(Surveyed(node.host, node.facts, rdma, environment, version, *ports))
    return tuple(found)


@once_per_subject
def not_surveyed(snapshot: Snapshot) -> tuple[NotKnown, ...]:
    """Return the nodes where the ports that NCCL may use are not known. Missing sections are reported elsewhere.

    A recorded machine is judged as if nothing were set, which is an assumption: what it passes is not known.
    """
    return tuple(_not_surveyed(snapshot))


def _not_surveyed(snapshot: Snapshot) -> Iterator[NotKnown]:
    for node, rdma in snapshot.known("rdma"):
        for device, why in rdma.unread.items():
            yield NotKnown(f"the ports of the RDMA device {device}: {why}", (node.host,))
        read = environment_of(node.facts)
        for section in (read, node.facts.environment, node.facts.nccl):
            if isinstance(section, Missing) and (rdma.ports or section is read):
                yield NotKnown(f"which RDMA ports NCCL may use: {section}", (node.host,))
                break


def environment_of(facts: NodeFacts) -> Fact[dict[str, str]]:
    """Return the variables NCCL reads. A recorded machine has only those of its nccl.conf, if it has one."""
    if isinstance(facts.environment, Missing) and facts.environment.missing == "absent":
        facts = replace(facts, environment={})
    if isinstance(facts.nccl, Missing) and facts.nccl.missing == "absent":
        return facts.environment
    return effective_environment(facts)


def without_devices(found: Sequence[Surveyed], what: str = "RDMA device") -> Iterator[NotApplicable]:
    """Where nodes were read and none of them has a port."""
    if found and not any(node.rdma.ports or node.rdma.unread for node in found):
        yield NotApplicable(f"{named([node.host for node in found])}: no {what} in /sys/class/infiniband")


def is_verbs(port: RdmaPort) -> bool:
    """Return False for an EFA port, which only its own plug-in uses and which has no link layer that NET/IB knows."""
    if port.driver == "efa":
        return False
    return isinstance(port.link_layer, Missing) or port.link_layer in (NATIVE, ROCE)


def has_gpus(facts: NodeFacts) -> bool | None:
    """Return True if the PCI bus or the driver lists NVIDIA GPUs; None if it is not known.

    In some virtual machines and containers /sys does not list the GPUs, so the bus alone does not prove that there is
    none.
    """
    if (not isinstance(facts.gpus, Missing) and facts.gpus) or gpus_without_nvml(facts):
        return True
    if isinstance(facts.pci, Missing):
        return None
    was_asked = not isinstance(facts.gpus, Missing) or facts.gpus.missing == "absent"
    return bool(topology.gpu_addresses(facts.pci)) or (False if was_asked else None)


def file_of(port: RdmaPort, name: str) -> str:
    """Return the file of a port in /sys."""
    return f"/sys/class/infiniband/{port.device}/ports/{port.port}/{name}"


def pieces(found: Iterable[tuple[PortOn, str, str, str]]) -> tuple[Evidence, ...]:
    """Evidence of ports: each with what was observed, what was expected, and the file; equal ones of hosts together."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for place, observed, expected, source in found:
        groups.setdefault((place.name, observed, expected, source), []).append(place.host)
    return tuple(
        Evidence(tuple(dict.fromkeys(hosts)), subject, observed, expected, source)
        for (subject, observed, expected, source), hosts in groups.items()
    )[:_MOST_EVIDENCE]


def by_hosts(values: Iterable[tuple[str, str]]) -> str:
    """`mlx5_3:1 on node01; mlx5_0:1 and mlx5_1:1 on node02 and node03`: hosts with the same names together."""
    names: dict[str, list[str]] = {}
    for host, name in values:
        names.setdefault(host, []).append(name)
    groups: dict[tuple[str, ...], list[str]] = {}
    for host, members in names.items():
        groups.setdefault(tuple(dict.fromkeys(members)), []).append(host)
    return "; ".join(f"{listed(members)} on {named(hosts)}" for members, hosts in groups.items())
