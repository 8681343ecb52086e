"""NCCL's socket interface: what is wrong with its choice, and the smallest change that leads to a better one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.networks import Network, network_of
from ncclcheck.advice.reach import Reach
from ncclcheck.advice.setting import ChosenPlaces, smallest_change
from ncclcheck.advice.speed import figure, is_clearly_faster, why_slow
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import Prediction, predict

MOST_NAMED = 3  # of the networks that were compared, in a note

Purpose: TypeAlias = Literal["repair", "speed"]  # what NCCL chooses now cannot work, or is slow


class Proposal(Struct, frozen=True):
    """A change of NCCL's environment that is still to be confirmed by asking the library on every node with it.

    `places` is the (interface, address) that our model says each host then uses, `why` what is wrong now, `evidence`
    what the probes showed there.
    """

    env_by_host: dict[str, dict[str, str | None]]
    places: dict[str, tuple[str, str]]
    why: str
    evidence: str
    purpose: Purpose = "repair"


def repair(
    snapshot: Snapshot, reach: Reach, networks: Sequence[Network], usable: Sequence[Network], fault: str
) -> Proposal | str:
    """Return the setting for the best usable network if NCCL's choice has a fault; else the note that says why not."""
    if not usable:
        return f"NCCL: {fault}. {_why_none(networks)}"
    return _proposal(snapshot, reach, usable, fault)


def speed_up(
    snapshot: Snapshot, reach: Reach, usable: Sequence[Network], places: ChosenPlaces
) -> Proposal | str:
    """Return the setting for a clearly faster network than these working places; else the note that says why not."""
    current = network_of(snapshot, reach, places)
    faster = [network for network in usable if is_clearly_faster(network, current)]
    if not faster:
        return f"NCCL: its own choice, {_why_kept(current, usable)}"
    why = why_slow("NCCL's", current, faster[0])
    found = _proposal(snapshot, reach, faster, why)
    if isinstance(found, Proposal) and not is_clearly_faster(
        network_of(snapshot, reach, found.places), current
    ):
        return f"NCCL: {why}; but the smallest setting selects a network that is not, so nothing is advised"
    return replace(found, purpose="speed") if isinstance(found, Proposal) else found


def keep_for_bootstrap(
    snapshot: Snapshot, reach: Reach, usable: Sequence[Network], places: ChosenPlaces, network: str
) -> str:
    """Return the note for nodes whose data goes over RDMA or a plug-in: the speed of sockets is not worth a setting."""
    current = network_of(snapshot, reach, places)
    faster = [interface for interface in usable if is_clearly_faster(interface, current)]
    rest = (
        f"; {figure(faster[0])} is faster than {figure(current)}, but too little to justify a setting"
        if faster
        else ""
    )
    return (
        f"NCCL: its own choice, {current.name}, is reachable between all nodes: nothing to set. "
        f"{network} carries the data, and sockets only the bootstrap{rest}"
    )


def stray_devices(networks: Sequence[Network], choices: Mapping[str, Prediction]) -> tuple[str, ...]:
    """Return a note on each broken network that NET/Socket uses as a device beside the bootstrap network."""
    return tuple(
        f"NCCL: its sockets take {network.name} as a network device too, on which not all nodes can connect "
        f"({network.failure}). Should data hang there, name the interface that works in NCCL_SOCKET_IFNAME; not "
        "advised, since only a running job shows which devices it uses (NCCL src/transport/net_socket.cc)"
        for network in networks
        if network.failure is not None
        and all(name in choices[host].candidates for host, (name, _) in network.places.items())
        and all(name != choices[host].interface for host, (name, _) in network.places.items())
    )


def _proposal(snapshot: Snapshot, reach: Reach, targets: Sequence[Network], why: str) -> Proposal | str:
    """Return the smallest change that leads to one of the wanted networks, the first first; else why there is none."""
    change = smallest_change(snapshot, reach, targets)
    if change is None:
        for node in snapshot.nodes:
            if isinstance(foreseen := predict(node.facts), Missing):
                return (
                    f"NCCL: {why}; what a setting would do on {node.host} is not known ({foreseen}); "
                    "nothing is advised"
                )
        return (
            f"NCCL: {why}. {targets[0].name} is reachable, but no variable makes NCCL use it on every node: "
            "see its config files and NCCL_COMM_ID"
        )
    env_by_host, places = change
    evidence = reach.evidence(places)
    network = network_of(snapshot, reach, places)
    if not isinstance(network.throughput, Missing):
        evidence += f", at {figure(network)}"
    if any(value == "" for env in env_by_host.values() for value in env.values()):
        evidence += "; the empty value keeps NCCL from taking the one in its config file, and counts as unset"
    return Proposal(env_by_host, places, why, evidence)


def _why_kept(current: Network, usable: Sequence[Network]) -> str:
    """Why nothing is to be set, with the figures of the others where there are any."""
    others = [network for network in usable if network.places != current.places]
    reachable = f"{current.name}, is reachable between all nodes"
    if isinstance(current.throughput, Missing):
        by_link = [
            network
            for network in others
            if not network.rank.is_virtual and network.link_mbps > current.link_mbps > 0
        ]
        figures = f" ({figure(by_link[0])}; {figure(current)})" if by_link else ""
        untested = ". Whether another network is faster was not measured" if others else ""
        return f"{reachable}: nothing to set{figures}{untested}"
    if not others:
        return f"{reachable}: nothing to set ({figure(current)})"
    compared = "; ".join(figure(network) for network in others[:MOST_NAMED])
    return (
        f"{reachable}, and no other network is clearly faster: nothing to set ({figure(current)}; {compared})"
    )


def fault_of(snapshot: Snapshot, reach: Reach, choices: Mapping[str, Prediction]) -> str:
    """Return what is wrong with NCCL's present choice; empty where nothing is."""
    failing = [host for host, choice in choices.items() if choice.interface is None]
    if failing:
        return f"NCCL finds no interface on {listed(failing, 4)} ({choices[failing[0]].reason})"
    loopbacks = {
        (node.host, interface.name)
        for node, interfaces in snapshot.known("interfaces")
        for interface in interfaces
        if interface.kind == "loopback" or "loopback" in interface.flags
    }
    bound = [host for host, choice in choices.items() if (host, choice.interface) in loopbacks]
    if bound:
        choice = choices[bound[0]]
        address = f"{choice.interface} ({choice.address})"
        return f"NCCL would bind {address} on {listed(bound, 4)}, which no other node can reach"
    places = {host: (choice.interface or "", choice.address or "") for host, choice in choices.items()}
    failure = reach.failure(places)
    if failure and not failure.tested:
        return f"whether NCCL's choice is reachable is not known: {failure.text}{_why_untested(places)}"
    if failure:
        return f"NCCL's choice is not reachable: {failure.text}"
    stall = reach.stall(places)
    return f"NCCL's choice loses large messages: {stall}" if stall else ""


def _why_untested(places: ChosenPlaces) -> str:
    if not any(address.lower().startswith("fe80:") for _, address in places.values()):
        return ""
    return (
        ", since a link-local address works only if the interface has the same index on all nodes "
        "(NCCL src/misc/socket.cc: the scope id goes to the others with the address)"
    )


def _why_none(networks: Sequence[Network]) -> str:
    """Return the candidate networks that were tried, each with the first pair that failed on it."""
    if not networks:
        return "No interface is up on every node under a common name or in a common subnet, so nothing is advised"
    tried = listed((f"{network.name} ({network.failure})" for network in networks), 3)
    return f"No interface is mutually reachable on all nodes, so nothing is advised. Tried: {tried}"
