"""What Gloo would bind on each node, and the GLOO_SOCKET_IFNAME that makes it a reachable network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ncclcheck.advice.networks import Network, network_of
from ncclcheck.advice.reach import Reach
from ncclcheck.advice.speed import figure, is_clearly_faster, why_slow
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.candidates import GLOO_IFNAME, Binding, gloo_binding
from ncclcheck.nccl.gpus.job_gpus import gpus_without_nvml

__all__ = ["GLOO_IFNAME", "Binding", "GlooAdvice", "advise_gloo", "gloo_binding", "gloo_places"]

SOURCE = "Gloo takes exact names: torch/csrc/distributed/c10d/init.cpp, gloo/transport/tcp/device.cc"


class GlooAdvice(Struct, frozen=True):
    """GLOO_SOCKET_IFNAME per host that needs it (empty: nothing to set), why, the network Gloo then uses, and notes."""

    values: dict[str, str]
    why: str
    network: Network | None
    notes: tuple[str, ...]


def gloo_places(snapshot: Snapshot) -> dict[str, tuple[str, str]]:
    """Return the first (interface, address) that Gloo binds on each host, as it is; a host where it fails has none."""
    bindings = {node.host: gloo_binding(node.facts) for node in snapshot.nodes}
    return {
        host: binding.places[0]
        for host, binding in bindings.items()
        if not isinstance(binding, Missing) and binding.places
    }


def advise_gloo(
    snapshot: Snapshot,
    reach: Reach,
    networks: Sequence[Network],
    preferred: Mapping[str, tuple[str, str]] | None,
) -> GlooAdvice:
    """Return the setting if Gloo needs one. It names the `preferred` places (NCCL's) where possible."""
    bindings: dict[str, Binding] = {}
    for node in snapshot.nodes:
        binding = gloo_binding(node.facts)
        if isinstance(binding, Missing):
            return _nothing(
                f"Gloo: what it binds on {node.host} is not known ({binding}); nothing is advised"
            )
        bindings[node.host] = binding
    if not bindings:
        return _nothing("Gloo: no node reported, so nothing is advised")
    ordered = sorted(networks, key=lambda network: network.places != preferred)
    fault, is_certain = _fault(reach, bindings)
    if not fault:
        return _faster(snapshot, reach, bindings, ordered)
    if not is_certain:
        return _nothing(f"Gloo: {fault}, so nothing is advised")
    return _on_the_first(snapshot, ordered, fault) or _nothing(
        f"Gloo: {fault}; no interface is mutually reachable on all nodes, so nothing is advised"
    )


def _faster(
    snapshot: Snapshot, reach: Reach, bindings: Mapping[str, Binding], networks: Sequence[Network]
) -> GlooAdvice:
    """Return a clearly faster network than the one Gloo binds; on nodes without GPUs Gloo carries the data."""
    reachable = f"Gloo: {_names(bindings)} is reachable between all nodes"
    if any(len(binding.places) != 1 for binding in bindings.values()):
        return _nothing(f"{reachable}: nothing to set")
    current = network_of(snapshot, reach, {host: binding.places[0] for host, binding in bindings.items()})
    better = [network for network in networks if is_clearly_faster(network, current)]
    if not better:
        return _nothing(f"{reachable}: nothing to set")
    if any(not _is_without_gpu(node.facts) for node in snapshot.nodes):
        slow = f"{figure(better[0])}; {figure(current)}"
        return _nothing(f"{reachable}, and it carries little traffic next to NCCL: nothing to set ({slow})")
    why = why_slow("Gloo's", current, better[0])
    return _on_the_first(snapshot, better, why) or _nothing(
        f"{reachable}; no exact name selects {better[0].name} on every node: nothing to set"
    )


def _on_the_first(snapshot: Snapshot, networks: Sequence[Network], why: str) -> GlooAdvice | None:
    """Return the names that make Gloo use the first network for which there are any."""
    for network in networks:
        values = {host: interface for host, (interface, _) in network.places.items()}
        if all(_binds(node.facts, values[node.host], network.places[node.host]) for node in snapshot.nodes):
            if len(set(values.values())) > 1:
                values = {
                    node.host: values[node.host]
                    for node in snapshot.nodes
                    if not _binds(node.facts, None, network.places[node.host])
                }
            return GlooAdvice(values, why, network, ())
    return None


def _is_without_gpu(facts: NodeFacts) -> bool:
    if isinstance(facts.gpus, Missing):
        return facts.gpus.missing == "absent" and not gpus_without_nvml(facts)
    return not facts.gpus


def _nothing(note: str) -> GlooAdvice:
    return GlooAdvice({}, "", None, (note,))


def _names(bindings: Mapping[str, Binding]) -> str:
    return "/".join(dict.fromkeys(name for binding in bindings.values() for name, _ in binding.places))


def _fault(reach: Reach, bindings: Mapping[str, Binding]) -> tuple[str, bool]:
    """Return what is wrong (empty: nothing), and whether that is certain or only untested."""
    faulty: dict[str, list[str]] = {}
    for host, binding in bindings.items():
        if binding.fault:
            faulty.setdefault(binding.fault, []).append(host)
    if faulty:
        fault, hosts = next(iter(faulty.items()))
        others = sum(len(more) for more in faulty.values()) - len(hosts)
        return f"on {listed(hosts, 4)}: {fault}" + (f" (and {others} more nodes)" if others else ""), True
    if len({len(binding.places) for binding in bindings.values()}) > 1:
        return "the nodes give Gloo different numbers of interfaces", True
    for place in range(len(next(iter(bindings.values())).places)):
        places = {host: binding.places[place] for host, binding in bindings.items()}
        if len({":" in address for _, address in places.values()}) > 1:
            return "Gloo would bind IPv4 on some nodes and IPv6 on others, which cannot connect", True
        failure = reach.failure(places)
        if failure is not None:
            return (
                f"Gloo would bind {listed((f'{a}' for _, a in places.values()), 4)}; {failure.text}",
                failure.tested,
            )
    return "", True


def _binds(facts: NodeFacts, name: str | None, place: tuple[str, str]) -> bool:
    binding = gloo_binding(facts, name)
    return not isinstance(binding, Missing) and not binding.fault and binding.places == (place,)
