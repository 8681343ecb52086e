"""What a benchmark runs on: the backend, how many ranks per node, and the interface Gloo is bound to."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.advice.gloo import gloo_binding
from ncclcheck.advice.interface import decide
from ncclcheck.advice.networks import find_networks
from ncclcheck.advice.reach import Reach, read_reach
from ncclcheck.model.bench import Backend
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.prediction import chosen_interface
from ncclcheck.run.options import RunOptions

Binding = dict[str, tuple[str, str]]  # host -> (interface, address)


class Network(Struct, frozen=True):
    """`binding` is empty where the backend chooses for itself; `proof` says why this network."""

    backend: Backend
    ranks_of: dict[str, int]
    binding: Binding
    environment_of: dict[str, dict[str, str]]
    proof: str


def bench_network(options: RunOptions, snapshot: Snapshot) -> Fact[Network]:
    """The network to measure on; Missing, with the reason, where there is none or the backend cannot run."""
    backend = _backend(options, snapshot)
    if isinstance(backend, Missing):
        return backend
    ranks_of = {node.host: _ranks(options, snapshot, node, backend) for node in snapshot.nodes}
    if len(snapshot.nodes) == 1:
        host = snapshot.nodes[0].host
        environment = {"GLOO_SOCKET_IFNAME": "lo"} if backend == "gloo" else {}
        binding = {host: ("lo", "127.0.0.1")} if backend == "gloo" else {}
        return Network(backend, ranks_of, binding, {host: environment}, "one node")
    found = _binding(snapshot, backend)
    if isinstance(found, Missing):
        return found
    binding, proof = found
    name = "GLOO_SOCKET_IFNAME" if backend == "gloo" else "NCCL_SOCKET_IFNAME"
    exact = "" if backend == "gloo" else "="
    environment_of = {host: {name: exact + interface} for host, (interface, _) in binding.items()}
    if backend == "nccl" and proof == _CHOSEN:
        environment_of = {}  # NCCL takes it by itself
    return Network(backend, ranks_of, binding, environment_of, proof)


def transport_text(network: Network) -> str:
    """For people: "gloo over TCP on eth0 (bound by GLOO_SOCKET_IFNAME=eth0: NCCL's own choice)"."""
    if not network.binding:
        return f"{network.backend}, its own choice of transport"
    names = sorted({interface for interface, _ in network.binding.values()})
    on = ", ".join(names)
    variables = sorted(
        {f"{name}={value}" for one in network.environment_of.values() for name, value in one.items()}
    )
    bound = f"bound by {' '.join(variables)}: {network.proof}" if variables else network.proof
    return f"{network.backend}{' over TCP' if network.backend == 'gloo' else ''} on {on} ({bound})"


def _backend(options: RunOptions, snapshot: Snapshot) -> Fact[Backend]:
    without_gpu = [node.host for node in snapshot.nodes if _gpu_count(node) == 0]
    torch_nccl = [
        node.host
        for node in snapshot.nodes
        if isinstance(node.facts.software, Missing) or isinstance(node.facts.software.torch_nccl, Missing)
    ]
    if options.bench.backend == "gloo":
        return "gloo"
    if not without_gpu and not torch_nccl:
        return "nccl"
    if options.bench.backend == "nccl":
        lacking = (
            f"no GPU on {', '.join(without_gpu)}"
            if without_gpu
            else f"no NCCL in torch on {', '.join(torch_nccl)}"
        )
        return Missing("unsupported", f"--backend nccl cannot run: {lacking}")
    return "gloo"


def _gpu_count(node: Node) -> int:
    return 0 if isinstance(node.facts.gpus, Missing) else len(node.facts.gpus)


def _ranks(options: RunOptions, snapshot: Snapshot, node: Node, backend: Backend) -> int:
    launch = node.facts.launch
    said = options.flags.nproc_per_node
    if said is None and not isinstance(launch, Missing):
        said = launch.nproc_per_node
    if said is not None:
        return said
    if backend == "nccl":
        return _gpu_count(node)
    return 2 if len(snapshot.nodes) == 1 else 1


_CHOSEN = "NCCL's own choice, proven by connections in both directions"
_UNPROVEN = "NCCL's own choice, not probed (--no-preflight)"


def _binding(snapshot: Snapshot, backend: Backend) -> Fact[tuple[Binding, str]]:
    chosen: Binding = {}
    for node in snapshot.nodes:
        choice = chosen_interface(node.facts)
        if not isinstance(choice, Missing):
            chosen[node.host] = choice
    complete = len(chosen) == len(snapshot.nodes)
    if isinstance(snapshot.probes, Missing):
        return (chosen, _UNPROVEN) if complete else Missing("absent", "no interface is known to use")
    reach = read_reach(snapshot)
    if isinstance(reach, Missing):
        return reach
    if complete and _carries(snapshot, backend, reach, chosen):
        return chosen, _CHOSEN
    for binding, proof in _alternatives(snapshot, reach):
        if _carries(snapshot, backend, reach, binding):
            return binding, proof
    return Missing(
        "unsupported", "there is no interface on which all nodes reach each other, so nothing can be measured"
    )


def _alternatives(snapshot: Snapshot, reach: Reach) -> Iterator[tuple[Binding, str]]:
    """The advised networks first, so that what is measured is what the advice is about; then any other."""
    advised = decide(snapshot)
    for proposal in advised.proposals:
        yield dict(proposal.places), "not NCCL's own choice, but the advised one"
    if advised.gloo.network is not None:
        yield advised.gloo.network.places, "not NCCL's own choice, but the one advised for Gloo"
    for network in find_networks(snapshot, reach):
        yield network.places, "not NCCL's choice, but all nodes reach each other there"


def _carries(snapshot: Snapshot, backend: Backend, reach: Reach, binding: Binding) -> bool:
    """All nodes reach each other there, small and large messages alike, and the backend can be bound to it."""
    if reach.failure(binding) is not None or reach.stall(binding) is not None:
        return False
    return backend == "nccl" or all(_gloo_binds(node, binding[node.host]) for node in snapshot.nodes)


def _gloo_binds(node: Node, place: tuple[str, str]) -> bool:
    found = gloo_binding(node.facts, place[0])
    return isinstance(found, Missing) or found.places == (place,)
