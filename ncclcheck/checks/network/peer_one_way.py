"""NC212 peer-one-way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncclcheck.checks.network._peers import finding
from ncclcheck.checks.network._reach import Blame, blame, directions, failed, not_probed, one_way
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Probe, Snapshot

_FIX = Fix(
    "find the rule that blocks this direction: for incoming connections on its target, or outgoing "
    "ones on its source; all ports of net.ipv4.ip_local_port_range have to be open",
    ("sudo nft list ruleset   # or: sudo iptables -S", "sysctl net.ipv4.conf.all.rp_filter"),
)


_ROUTE_FIX = Fix(
    "give the nodes a route to that address, and take the NAT between them away",
    ("ip route get ADDRESS", "sudo nft list ruleset | grep -n masquerade   # on the routers between them"),
)


@check(
    "NC212",
    "peer-one-way",
    "Nodes can connect to each other in both directions",
    needs=("interfaces",),
    nodes=2,
    joined=True,
)
def peer_one_way(snapshot: Snapshot) -> Iterator[Answer]:
    """If one node can open connections to another, the other can open connections back.

    ## Why it matters
    Any rank may connect to any other. With a rule in one direction, a job may start or not, depending on the
    placement of ranks, and only some ranks hang.

    ## How to fix
    Check the firewall rules for the direction that fails: incoming on its target, outgoing on its source. Reverse
    path filtering (`rp_filter`) with two interfaces in one network has the same effect. A node behind NAT reaches
    the others, which have no route to its address.

    ## Source
    NCCL src/bootstrap.cc, src/transport/net_socket.cc: both ends listen and connect. Linux ip-sysctl.rst (rp_filter).
    """
    probed = directions(snapshot, "tcp")
    for explanation in blame(one_way(probed), probed):
        fix = _ROUTE_FIX if _is_hidden(explanation) else _FIX
        yield finding(explanation, _what(explanation, probed), fix, but=_but(explanation, probed))
    yield from not_probed(snapshot, "tcp")


def _what(explanation: Blame, probed: Sequence[Probe]) -> str:
    if _is_hidden(explanation):
        return (
            "there is no route in this direction, although connections from the other side arrive: NAT "
            "(masquerading) on the way hides that address, so some connections of a job fail"
        )
    outcomes = " / ".join(dict.fromkeys(probe.outcome for probe in explanation.directions))
    if _answers_lost(explanation, probed):
        return (
            f"{outcomes} in this direction only; the answers to connections from the other side are "
            "dropped too, so neither side can connect"
        )
    return f"{outcomes} in this direction only, so some connections of a job hang"


def _is_hidden(explanation: Blame) -> bool:
    """Return whether no rule blocks this direction, but the address has no route: as of a node behind NAT."""
    return all(probe.outcome == "no-route" for probe in explanation.directions)


def _answers_lost(explanation: Blame, probed: Sequence[Probe]) -> bool:
    lost = {(probe.from_host, probe.to_host) for probe in failed(probed) if probe.outcome == "answer-lost"}
    return any((probe.to_host, probe.from_host) in lost for probe in explanation.directions)


def _but(explanation: Blame, probed: Sequence[Probe]) -> str:
    if _answers_lost(explanation, probed):
        return ""
    first = explanation.directions[0]
    open_ways = {
        "unreachable": f", though {explanation.hosts[0]} can connect to them",
        "mute": ", though other nodes can connect to it",
        "pair": f", though {first.to_host} can connect to {first.from_host}",
    }
    return open_ways.get(explanation.kind, "")
