"""NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME as they are in effect on each node, and where they were read."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ncclcheck.checks.hosts import not_reported
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname
from ncclcheck.nccl.environment import source_of
from ncclcheck.nccl.prediction import Prediction, effective_environment, known_version, node_choice
from ncclcheck.nccl.versions import NEWEST

NCCL_VARIABLE, GLOO_VARIABLE = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"


class Setting(Struct, frozen=True):
    """One node: the value in effect (None: unset), its source, and what NCCL chose under it."""

    host: str
    nccl: str | None
    nccl_source: str
    gloo: tuple[str, ...] | None
    choice: Prediction
    interfaces: tuple[Interface, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the node's interfaces."""
        return tuple(interface.name for interface in self.interfaces)


def settings(snapshot: Snapshot) -> tuple[Setting, ...]:
    """The setting of every node of which all parts are known."""
    found = (_setting(node.host, node.facts) for node in snapshot.nodes)
    return tuple(one for one in found if isinstance(one, Setting))


def not_settled(snapshot: Snapshot) -> Iterator[NotKnown]:
    """The nodes of which the setting, or what NCCL makes of it, is not known."""
    for node in snapshot.nodes:
        one = _setting(node.host, node.facts)
        if isinstance(one, Missing):
            yield NotKnown(str(one), (node.host,))
    yield from not_reported(snapshot)


def _setting(host: str, facts: NodeFacts) -> Setting | Missing:
    if isinstance(facts.environment, Missing):
        return facts.environment
    if isinstance(facts.interfaces, Missing):
        return facts.interfaces
    if isinstance(facts.nccl, Missing):
        return facts.nccl
    environment, choice = effective_environment(facts), node_choice(facts)
    if isinstance(environment, Missing):
        return environment
    if isinstance(choice, Missing):
        return choice
    value = environment.get(NCCL_VARIABLE)
    version, home_set = known_version(facts) or NEWEST, facts.nccl.home_set
    source = source_of(NCCL_VARIABLE, facts.environment, facts.nccl.config_files, version, home_set=home_set)
    return Setting(
        host=host,
        nccl=value if ifname.is_set(value) else None,
        nccl_source=source or "environment",
        gloo=ifname.parse_gloo(environment.get(GLOO_VARIABLE)),
        choice=choice,
        interfaces=facts.interfaces,
    )
