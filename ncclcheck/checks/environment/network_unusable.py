"""NC609 network-unusable."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.explanation import network_choice
from ncclcheck.nccl.network import IB, SOCKET
from ncclcheck.nccl.prediction import effective_environment

_VARIABLE = "NCCL_NET"
_BUILT_IN = frozenset({IB.lower(), SOCKET.lower()})


@check(
    "NC609",
    "network-unusable",
    "The built-in network that NCCL_NET names can be used on every node",
    needs=("environment",),
)
def network_unusable(snapshot: Snapshot) -> Iterator[Answer]:
    """The network of NCCL_NET is there: RDMA devices for IB, an interface for Socket.

    Any other name is that of a plug-in, which plugin-missing tries; a name that no plug-in can have is reported here.

    ## Why it matters
    NCCL_NET leaves NCCL no choice. Where the network has no device, NCCL does not fall back, and the job fails at its
    start. Scripts carry NCCL_NET=IB from a cluster with InfiniBand to one without.

    ## How to fix
    Unset NCCL_NET, so that NCCL takes the best network it finds, or install what the network needs on the named nodes.

    ## Source
    NCCL src/net.cc, since 2.27 src/plugin/net.cc (ncclNetInit), and src/init.cc for NCCL_NET; `ncclcheck predict` shows
    the whole choice. The library itself can be asked only with a GPU, so this is ncclcheck's model of it.
    """
    caught: dict[tuple[str, str], list[str]] = {}
    for node in snapshot.nodes:
        environment = effective_environment(node.facts)
        if isinstance(environment, Missing):
            if not isinstance(node.facts.environment, Missing):
                yield NotKnown(f"{_VARIABLE} in NCCL's config files: {environment}", (node.host,))
            continue
        network_name = environment.get(_VARIABLE, "")
        if not network_name:
            continue
        choice = network_choice(node.facts)
        if isinstance(choice, Missing):
            yield NotKnown(f"which network NCCL uses: {choice}", (node.host,))
        elif choice.network is None and not choice.fails and network_name.lower() in _BUILT_IN:
            yield NotKnown(f"which network NCCL uses: {choice.network_reason}", (node.host,))
        elif choice.fails and not _is_told_elsewhere(node, environment, network_name):
            caught.setdefault((network_name, choice.network_reason), []).append(node.host)
    for (network_name, reason), hosts in caught.items():
        yield _finding(network_name, reason, tuple(hosts))
    yield from not_reported(snapshot)


def _is_told_elsewhere(node: Node, environment: dict[str, str], network_name: str) -> bool:
    """Return whether rdma-ignored, env-contradiction, ifname-no-match or plugin-missing names the cause."""
    rdma = node.facts.rdma
    if network_name.lower() == IB.lower():
        return bool(environment.get("NCCL_IB_DISABLE")) or (
            not isinstance(rdma, Missing) and bool(rdma.ports)
        )
    return network_name.lower() == SOCKET.lower() or bool(environment.get("NCCL_NET_PLUGIN"))


def _finding(network_name: str, reason: str, hosts: tuple[str, ...]) -> Finding:
    why = reason.partition(f"{_VARIABLE}={network_name}: ")[2] or reason
    return Finding(
        "error",
        f"NCCL stops with an error on {named(hosts)}, because of {_VARIABLE}={network_name}: {why}",
        hosts,
        (
            Evidence(
                hosts,
                _VARIABLE,
                network_name,
                "a network that is there",
                "the job's environment, NCCL's config files",
            ),
        ),
        (
            Fix(
                f"unset {_VARIABLE}, so that NCCL takes the best network that it finds on "
                f"{verb(hosts, 'this node', 'these nodes')}",
                (f"unset {_VARIABLE}",),
            ),
        ),
    )
