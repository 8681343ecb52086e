"""In random clusters the proposal makes every node choose the best network that works, and no part of it is idle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.interface import decide
from ncclcheck.advice.networks import Network, find_networks, network_of
from ncclcheck.advice.reach import Reach, read_reach
from ncclcheck.advice.setting import choices_under
from ncclcheck.advice.sockets import Proposal
from ncclcheck.advice.speed import best_first, is_clearly_faster
from ncclcheck.model.facts import InterfaceKind, NcclChoice, NcclConfigFile
from ncclcheck.model.snapshot import Snapshot
from tests.advice.clusters import NO_LIBRARY, of_nodes, unasked, with_bandwidth, with_probes
from tests.fact_builders import interface, software, some

IFNAME, FAMILY, COMM_ID = "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID"
NAMES = ("eth0", "eth1", "eth10", "ens3", "ib0", "br-1f", "docker7", "e", "^x", "=y", "a,b", "p:1", "lom0")
KINDS: tuple[InterfaceKind, ...] = ("physical", "physical", "bridge", "virtual")

names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
values = st.one_of(
    st.sampled_from(("^docker0", "lo", "eth", "=eth1", "^lo", ",,", "", "x", "=", "^eth0,lo")),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(",".join),
)


class Card(Struct, frozen=True):
    """An interface as a node of the cluster has it; of subnet 4: without an IPv4 address."""

    name: str
    subnet: int
    kind: InterfaceKind
    speed_mbps: int
    running: bool
    has_ipv6: bool


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Card, ...]:
    """The interfaces of a node, in the kernel's order."""
    return tuple(
        Card(
            name,
            draw(st.integers(0, 4)),
            draw(st.sampled_from(KINDS)),
            draw(st.sampled_from((1_000, 10_000, 100_000))),
            draw(st.integers(0, 7)) > 0,
            draw(st.integers(0, 3)) == 0,
        )
        for name in draw(names)
    )


@st.composite
def nodes(draw: st.DrawFn, number: int, common: World) -> dict[str, Any]:
    """A node: as all are, or with its interfaces in another order, or with others under the same or other names."""
    cards = common.layout
    how = draw(st.integers(0, 7))
    if how == 0:
        cards = draw(layouts())
    elif how == 1:
        cards = tuple(draw(st.permutations(cards)))
    elif how == 2:
        renamed = draw(
            st.lists(st.sampled_from(NAMES), min_size=len(cards), max_size=len(cards), unique=True)
        )
        cards = tuple(replace(card, name=name) for card, name in zip(cards, renamed, strict=True))
    own = []
    for index, card in enumerate(cards, start=2):
        addresses = [] if card.subnet == 4 else [f"10.0.{card.subnet}.{number * 10 + index}/24"]
        addresses += [f"fe80::{number}:{index}/64"] if card.has_ipv6 else []
        made = interface(card.name, *addresses, index=index, kind=card.kind, running=card.running)
        own.append(replace(made, speed_mbps=card.speed_mbps))
    environment = dict(common.environment)
    if draw(st.integers(0, 7)) == 0:
        environment[IFNAME] = draw(values)
    config = (NcclConfigFile("/etc/nccl.conf", common.config),) if common.config else ()
    sections = unasked(*own, **environment)
    sections["nccl"] = NcclChoice(NO_LIBRARY, config, True)
    sections["software"] = software(nccl=common.version, torch_nccl=common.version)
    return sections


class World(Struct, frozen=True):
    """What the nodes of a cluster have in common."""

    layout: tuple[Card, ...]
    environment: dict[str, str]
    config: dict[str, str]
    version: str


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """Two to four nodes; some subnets are broken, and some interfaces were measured."""
    environment: dict[str, str] = {}
    if draw(st.booleans()):
        environment[IFNAME] = draw(values)
    if draw(st.integers(0, 5)) == 0:
        environment[FAMILY] = draw(st.sampled_from(("AF_INET", "AF_INET6", "ipv6")))
    if draw(st.integers(0, 7)) == 0:
        environment[COMM_ID] = draw(st.sampled_from(("10.0.1.9:5000", "127.0.0.1:5000", "x", "")))
    config = draw(
        st.sampled_from(
            ({}, {}, {}, {IFNAME: "lo"}, {FAMILY: "AF_INET6"}, {IFNAME: "eth", FAMILY: "AF_INET"})
        )
    )
    version = draw(st.sampled_from(("2.27.7", "2.28.9", "2.32.3")))
    common = World(draw(layouts()), environment, config, version)
    count = draw(st.integers(2, 4))
    snapshot = of_nodes(*(draw(nodes(number, common)) for number in range(1, count + 1)))
    broken = draw(st.sets(st.integers(0, 3), max_size=2))
    for probe in some(snapshot.probes):
        if int(probe.address.split(".")[2]) in broken:
            snapshot = with_probes(snapshot, "filtered", to_host=probe.to_host, address=probe.address)
    if draw(st.booleans()):
        gbit_s = {name: draw(st.sampled_from((1.0, 1.2, 9.0, 9.4, 40.0))) for name in NAMES}
        snapshot = with_bandwidth(snapshot, draw(st.sampled_from((0.1, 1.0))), **gbit_s)
    return snapshot


def usable(snapshot: Snapshot, reach: Reach) -> tuple[Network, ...]:
    return best_first([network for network in find_networks(snapshot, reach) if network.failure is None])


def parts(proposal: Proposal) -> list[dict[str, dict[str, str | None]]]:
    """The proposal without one setting, for each setting that is printed: a variable and value, on its hosts."""
    settings_ = {(name, value) for env in proposal.env_by_host.values() for name, value in env.items()}
    return [
        {
            host: {name: value for name, value in env.items() if (name, value) != left_out}
            for host, env in proposal.env_by_host.items()
        }
        for left_out in sorted(settings_, key=str)
    ]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(worlds())
def test_a_proposal_leads_every_node_to_the_network_it_names_and_is_the_smallest(snapshot: Snapshot) -> None:
    reach = some(read_reach(snapshot))
    for proposal in decide(snapshot).proposals:
        event(
            "proposal: " + ", ".join(sorted({name for env in proposal.env_by_host.values() for name in env}))
        )
        assert choices_under(snapshot, proposal.env_by_host) == proposal.places
        chosen = network_of(snapshot, reach, proposal.places)
        assert chosen.failure is None
        assert any(env for env in proposal.env_by_host.values())
        present = choices_under(snapshot, {})
        if present is not None and network_of(snapshot, reach, present).failure is None:
            assert is_clearly_faster(chosen, network_of(snapshot, reach, present))
        for smaller in parts(proposal):
            assert choices_under(snapshot, smaller) != proposal.places, (smaller, proposal.env_by_host)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(worlds())
@pytest.mark.further
def test_nothing_is_proposed_only_where_nothing_is_needed_or_nothing_helps(snapshot: Snapshot) -> None:
    reach = some(read_reach(snapshot))
    decision = decide(snapshot)
    if decision.proposals:
        return
    present = choices_under(snapshot, {})
    if present is not None and network_of(snapshot, reach, present).failure is None:
        current = network_of(snapshot, reach, present)
        wanted = [one for one in usable(snapshot, reach) if is_clearly_faster(one, current)]
        event("works as it is, faster ones: " + str(len(wanted)))
    else:
        wanted = list(usable(snapshot, reach))
        event("does not work, usable networks: " + str(len(wanted)))
    for network in wanted:
        for removed in ({}, {FAMILY: None}, {COMM_ID: None}, {FAMILY: None, COMM_ID: None}, {FAMILY: ""}):
            named: dict[str, dict[str, str | None]] = {
                host: {**removed, IFNAME: f"={name}"} for host, (name, _) in network.places.items()
            }
            assert choices_under(snapshot, named) != network.places, named
