"""Through which links the ranks of a benchmark reach each other, and how fast these are, by facts and measurements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ncclcheck.checks.chosen import owner_of
from ncclcheck.checks.pcie_path import least, paths
from ncclcheck.measure.links.network_rates import Throughput, measured_gbit_s_to
from ncclcheck.measure.op_ceiling import pcie_gb_s
from ncclcheck.measure.traffic import Term
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.events import Process
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.gpu import Fabric
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl import topology
from ncclcheck.nccl.explanation import network_choice
from ncclcheck.nccl.network import IB, SOCKET
from ncclcheck.nccl.rdma import data_direct

_OF_DEVICE = re.compile(r"NET/IB/(\d{1,4})\b", re.ASCII)
_GBIT = 8.0  # Gbit/s in one GB/s
_FORBID_MNNVL = {
    "NCCL_MNNVL_ENABLE": ("0",),
    "NCCL_CUMEM_ENABLE": ("0",),
    "NCCL_P2P_DISABLE": ("1",),
    "NCCL_P2P_LEVEL": ("0", "LOC"),
}
_DECIMALS = ((1.0, 2), (100.0, 1), (float("inf"), 0))  # below this magnitude, so many


def network_used(node: Node, processes: Sequence[Process]) -> str | None:
    """`IB`, `Socket` or a plug-in's name: as its NCCL log says, else as NCCL is known to choose; None: not known."""
    network = next((process.network for process in processes if process.network), "")
    if network:
        return network
    choice = network_choice(node.facts)
    return None if isinstance(choice, Missing) else choice.network


def network_terms(snapshot: Snapshot, bench: BenchResult) -> Fact[tuple[Term, ...]]:
    """Return the possible bottlenecks between nodes: the slowest node's links by speed, and TCP as measured there.

    Missing with the reason where neither is known.
    """
    by_speed = _slowest(snapshot, bench)
    measured = None if _uses_rdma(snapshot, bench) else measured_term(snapshot, bench)
    found = tuple(term for term in (by_speed, measured) if isinstance(term, Term))
    if found:
        return found
    why = by_speed.detail or by_speed.missing if isinstance(by_speed, Missing) else ""
    return Missing("absent", f"{why}, and {_not_measured(snapshot, bench)}")


def _not_measured(snapshot: Snapshot, bench: BenchResult) -> str:
    """Why the bandwidth that was measured before the benchmark, if any was, says nothing about the links."""
    to = measured_gbit_s_to(snapshot.probes, bench.places) if bench.places else {}
    if not to:
        return "no bandwidth was measured there"
    least = min(throughput.median for throughput in to.values())
    return f"TCP was measured there at {gbit(least)} with the CPU as the bottleneck; the link may be faster"


def measured_term(snapshot: Snapshot, bench: BenchResult) -> Term | None:
    """TCP to the slowest node as measured before the benchmark; None where it was not, or the CPU was the limit."""
    to = measured_gbit_s_to(snapshot.probes, bench.places) if bench.places else {}
    usable: dict[str, Throughput] = {
        host: throughput for host, throughput in to.items() if not throughput.cpu_limited
    }
    if len(usable) < len(bench.places) or not usable:
        return None
    host = min(usable, key=lambda name: usable[name].median)
    gbit_s = usable[host].median
    where = bench.places[host][0]
    return Term(gbit_s / _GBIT, f"{gbit(gbit_s)} to {where} of {host} (as measured)", "measured", None)


def is_one_nvlink_domain(snapshot: Snapshot, bench: BenchResult) -> bool:
    """Return True if ranks of different hosts reach each other by NVLink (MNNVL), and none of them by the network.

    As the logs of NCCL say; where they say nothing of links between hosts, by the facts of the nodes.
    """
    host_of = {
        process.rank: log.host
        for log in bench.logs
        for process in processes_of(bench, log.host)
        if process.rank is not None
    }
    links = [
        link for log in bench.logs for process in processes_of(bench, log.host) for link in process.links
    ]
    across = [link for link in links if host_of.get(link.source) != host_of.get(link.target)]
    if across:
        return all(link.via.startswith("P2P") for link in across)
    return (
        bench.backend == "nccl"
        and bench.nodes > 1
        and _may_share_nvlink([node.facts for node in snapshot.nodes])
    )


def _may_share_nvlink(nodes: Sequence[NodeFacts]) -> bool:
    """Return whether NCCL would use NVLink between these nodes, by its own rules.

    All GPUs have joined the fabric of one cluster UUID and clique, no variable forbids it, and an IMEX channel is there
    (NCCL 2.21.5 to 2.30.7: src/init.cc, ncclMnnvlCheck in src/mnnvl.cc; without a channel it does not start).
    """
    domains: set[str] = set()
    for facts in nodes:
        if isinstance(facts.gpus, Missing) or not facts.gpus:
            return False
        fabrics = [gpu.state.fabric for gpu in facts.gpus]
        domains.update("" if isinstance(fabric, Missing) else _joined_domain(fabric) for fabric in fabrics)
        driver, environment = facts.gpu_driver, facts.environment
        if not isinstance(driver, Missing) and driver.imex_channels == ():
            return False
        if not isinstance(environment, Missing) and any(
            environment.get(name, "").upper() in values for name, values in _FORBID_MNNVL.items()
        ):
            return False
    return len(domains) == 1 and "" not in domains


def _joined_domain(fabric: Fabric) -> str:
    return fabric.domain if fabric.state == "completed" else ""


def switches_may_add(snapshot: Snapshot, bench: BenchResult) -> bool:
    """Return False if the network is known to have no switch that reduces in flight (SHARP): only InfiniBand has."""
    if bench.backend != "nccl" or not _uses_rdma(snapshot, bench):
        return False
    ports = [port for _, rdma in snapshot.known("rdma") for port in rdma.ports]
    return any(port.link_layer != "Ethernet" for port in ports)


def gbit(gbit_s: float) -> str:
    """`0.96 Gbit/s`, `1.0 Gbit/s`, `100 Gbit/s`."""
    decimals = next(decimals for most, decimals in _DECIMALS if gbit_s < most)
    return f"{gbit_s:.{decimals}f} Gbit/s"


def processes_of(bench: BenchResult, host: str) -> tuple[Process, ...]:
    """Return the parsed NCCL logs of a host's workers; empty where there are none."""
    for log in bench.logs:
        if log.host == host and not isinstance(log.processes, Missing):
            return log.processes
    return ()


def _uses_rdma(snapshot: Snapshot, bench: BenchResult) -> bool:
    if bench.backend != "nccl":
        return False
    used = {network_used(node, processes_of(bench, node.host)) for node in snapshot.nodes}
    return bool(used - {SOCKET, None})


def _slowest(snapshot: Snapshot, bench: BenchResult) -> Fact[Term]:
    terms: list[tuple[str, Term]] = []
    for node in snapshot.nodes:
        found = _links(node, bench)
        if isinstance(found, Missing):
            return found
        terms.append((node.host, found))
    if not terms:
        return Missing("absent", "no node reported")
    host, slowest = min(terms, key=lambda term: term[1].gb_s)
    if len({term.gb_s for _, term in terms}) == 1:
        return slowest
    return Term(slowest.gb_s, f"{slowest.text} of {host}", slowest.source, slowest.spec_gb_s, slowest.parts)


def _links(node: Node, bench: BenchResult) -> Fact[Term]:
    """Return the links from one node to the others."""
    processes = processes_of(bench, node.host)
    used = network_used(node, processes) if bench.backend == "nccl" else SOCKET
    if used == SOCKET:
        names = {socket.partition(":")[0] for process in processes for socket in process.sockets}
        place = bench.places.get(node.host)
        return _interfaces(node, tuple(sorted(names)) or ((place[0],) if place else ()), place)
    if used == IB:
        return _ports(node, processes)
    if used is None:
        return Missing("absent", f"which network NCCL uses on {node.host} is not known")
    return Missing("absent", f"the network {used} of {node.host} does not report its links")


def _interfaces(node: Node, names: Sequence[str], place: tuple[str, str] | None) -> Fact[Term]:
    interfaces = node.facts.interfaces
    if isinstance(interfaces, Missing):
        return Missing(interfaces.missing, f"the interfaces of {node.host} were not read")
    if not names:
        return Missing("absent", f"which interface is used on {node.host} is not known")
    speeds: list[float] = []
    for name in names:
        address = place[1] if place and place[0] == name else ""
        owner = owner_of(interfaces, address, name)
        speed = _speed(node.host, name, owner)
        if isinstance(speed, Missing):
            return speed
        speeds.append(speed)
    text = f"{_together(speeds)} on {', '.join(names)}"
    return Term(sum(speeds) / _GBIT, text, "link-speed", sum(speeds) / _GBIT, len(speeds))


def _speed(host: str, name: str, interface: Interface | None) -> Fact[float]:
    if interface is None:
        return Missing("absent", f"{name} is not among the interfaces of {host}")
    # A veth says 10000 whatever is behind it (Linux drivers/net/veth.c)
    if not interface.is_hardware:
        kind = interface.tunnel or interface.kind
        return Missing("unsupported", f"{name} of {host} is virtual ({kind}) and has no speed of its own")
    if isinstance(interface.speed_mbps, Missing):
        return Missing(interface.speed_mbps.missing, f"{name} of {host} reports no speed")
    return interface.speed_mbps / 1000


def _ports(node: Node, processes: Sequence[Process]) -> Fact[Term]:
    rdma = node.facts.rdma
    if isinstance(rdma, Missing):
        return Missing(rdma.missing, f"the RDMA devices of {node.host} were not read")
    known = {f"{port.device}:{port.port}" for port in rdma.ports}
    devices = {device.partition("/")[0] for process in processes for device in process.devices}
    named = {data_direct.plain(name, known) for name in devices} or _predicted(node.facts)
    ports = [rdma_port for rdma_port in rdma.ports if f"{rdma_port.device}:{rdma_port.port}" in named]
    if not ports:
        return Missing("absent", f"which RDMA ports NCCL uses on {node.host} is not known")
    carrying = {data_direct.plain(name, known) for name in _carrying(processes)}
    carrying_cards = {_card(port) for port in ports if f"{port.device}:{port.port}" in carrying}
    cards: Counter[str] = Counter()
    for port in ports:
        if isinstance(port.rate_gbps, Missing):
            return Missing(port.rate_gbps.missing, f"the rate of {port.device} of {node.host} was not read")
        cards[_card(port)] += port.rate_gbps  # type: ignore[assignment]
    by_itself = [port for port in ports if f"{port.device}:{port.port}" in devices or not devices]
    slots = _slots(node.facts, by_itself)  # of others the data takes the path of another PCI function
    rate_of = {card: min(rate, slots.get(card, rate)) for card, rate in cards.items()}
    rates = [rate for card, rate in rate_of.items() if not carrying_cards or card in carrying_cards]
    bound_by_slot = any(slots.get(card, rate) < rate for card, rate in cards.items())
    text = f"{_together(rates)} ({', '.join(sorted({port.device for port in ports})[:8])})"
    text += ", limited by the PCIe links of the cards" if bound_by_slot else ""
    if len(rates) < len(rate_of):
        text += f"; {len(rate_of) - len(rates)} of {len(rate_of)} cards carry no data of these ranks"
    # What no algorithm exceeds is still all cards: another choice of NCCL's would use them.
    return Term(sum(rates) / _GBIT, text, "link-speed", sum(rate_of.values()) / _GBIT, len(rates))


def _carrying(processes: Sequence[Process]) -> set[str]:
    """Return the ports (`mlx5_0:1`) that connections were made through; empty where the logs do not tell.

    NCCL opens every card that fits, and a ring uses those near its GPUs: one GPU per node sends through one card. From
    2.20 to 2.23 the number is that of a network device, which can be several ports; newer ones number the ports first.
    """
    used: set[str] = set()
    for process in processes:
        devices = process.network_devices or tuple((device,) for device in process.devices)
        for link in process.links:
            number = _OF_DEVICE.match(link.via)
            if number is None:
                continue
            if int(number[1]) >= len(devices):
                return set()
            used.update(device.partition("/")[0] for device in devices[int(number[1])])
    return used


def _predicted(facts: NodeFacts) -> set[str]:
    choice = network_choice(facts)
    return (
        set()
        if isinstance(choice, Missing)
        else {f"{hca_choice.device}:{hca_choice.port}" for hca_choice in choice.hcas}
    )


def _card(port: RdmaPort) -> str:
    """Return the address that the functions of one card share, which share a PCIe link."""
    return topology.card_of(port.pci) if isinstance(port.pci, str) else port.device


def _slots(facts: NodeFacts, ports: Sequence[RdmaPort]) -> Mapping[str, float]:
    """Gbit/s of the narrowest PCIe link above each card, where it is known."""
    if isinstance(facts.pci, Missing):
        return {}
    found: dict[str, float] = {}
    by_device = {port.device: _card(port) for port in ports}
    for path in paths(facts.pci, facts.rdma):
        links = [
            pcie_gb_s(hop.link_speed_gt_s, hop.link_width) * _GBIT
            for hop in path.hops
            if isinstance(hop.link_speed_gt_s, float)
            and isinstance(hop.link_width, int)
            and hop.link_width > 0
        ]
        narrowest = least(links)
        for name in path.names:
            if name in by_device and narrowest is not None:
                found[by_device[name]] = narrowest
    return found


def _together(gbits: Iterable[float]) -> str:
    """`100 Gbit/s`, `8 x 400 Gbit/s`, or the sum of unequal ones."""
    rates = list(gbits)
    if len(set(rates)) == 1:
        return f"{len(rates)} x {gbit(rates[0])}" if len(rates) > 1 else gbit(rates[0])
    return f"{gbit(sum(rates))} in all"
