"""NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME as they are in effect on each node, and where they were read."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.checks.chosen import unread_section
from ncclcheck.checks.hosts import not_reported
from ncclcheck.checks.subject_cache import once_per_subject
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import Interface, NodeFacts
from ncclcheck.model.finding import NotKnown
from ncclcheck.model.formats.addresses import is_loopback
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import ifname
from ncclcheck.nccl.environment import source_of
from ncclcheck.nccl.prediction import (
    Prediction,
    effective_environment,
    known_version,
    node_choice,
    predict,
)
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_values import misread
from ncclcheck.nccl.versions import NEWEST

NCCL_VARIABLE, GLOO_VARIABLE = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
_FROM_RANK = "environment"


class IfnameSetting(Struct, frozen=True):
    """One node: the value in effect (None: unset), its source, and what NCCL chose under it.

    `rank` is that of a further rank whose environment differs; None: what holds for the node's first.
    """

    host: str
    nccl: str | None
    nccl_source: str
    gloo: tuple[str, ...] | None
    choice: Prediction
    interfaces: tuple[Interface, ...]
    comm_id: str | None = None  # NCCL_COMM_ID, which decides in place of NCCL_SOCKET_IFNAME where it is set
    rank: int | None = None

    @property
    def of_rank(self) -> str:
        """` of rank 3` for a further rank, otherwise nothing."""
        return "" if self.rank is None else f" of rank {self.rank}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the node's interfaces."""
        return tuple(interface.name for interface in self.interfaces)


def settings(snapshot: Snapshot) -> tuple[IfnameSetting, ...]:
    """Return the setting of every node where all parts are known."""
    return tuple(setting for _, setting in _of_nodes(snapshot) if isinstance(setting, IfnameSetting))


@once_per_subject
def _of_nodes(snapshot: Snapshot) -> tuple[tuple[str, IfnameSetting | Missing], ...]:
    return tuple((node.host, setting_of(node.host, node.facts)) for node in snapshot.nodes)


def settings_of_ranks(snapshot: Snapshot) -> tuple[IfnameSetting, ...]:
    """Return the settings of further ranks that differ from those of the first rank of their node.

    What NCCL would choose there is predicted. Ranks of which that is not known are not there.
    """
    facts = {node.host: node.facts for node in snapshot.nodes}
    found = []
    for place in snapshot.ranks:
        if NCCL_VARIABLE not in place.differs or place.host not in facts:
            continue
        of_node = setting_of(place.host, facts[place.host])
        choice = predict(facts[place.host], None, place.differs)
        environment = effective_environment(facts[place.host], place.differs)
        if not isinstance(of_node, Missing) and not isinstance(choice, Missing):
            value = None if isinstance(environment, Missing) else environment.get(NCCL_VARIABLE)
            nccl = value if ifname.is_set(value) else None
            found.append(
                replace(of_node, nccl=nccl, nccl_source=_FROM_RANK, gloo=None, choice=choice, rank=place.rank)
            )
    return tuple(found)


def not_settled(snapshot: Snapshot) -> Iterator[NotKnown]:
    """Yield the nodes where the setting, or what NCCL makes of it, is not known."""
    for node, (host, setting) in zip(snapshot.nodes, _of_nodes(snapshot), strict=True):
        if isinstance(setting, Missing):
            yield NotKnown(str(setting), (host,), unread_section(node.facts))
    yield from not_reported(snapshot)


def setting_of(host: str, facts: NodeFacts) -> IfnameSetting | Missing:
    """Return the setting of one node; Missing where a part of it is not known."""
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
    return IfnameSetting(
        host=host,
        nccl=value if ifname.is_set(value) else None,
        nccl_source=source or "environment",
        gloo=ifname.parse_gloo(environment.get(GLOO_VARIABLE)),
        choice=choice,
        interfaces=facts.interfaces,
        comm_id=environment.get("NCCL_COMM_ID"),
    )


def gloo_fault(name: str, interfaces: tuple[Interface, ...]) -> str:
    """Why Gloo cannot use the name as it is written; "" where it can, or where nothing has such a name."""
    labels = {address.label or candidate.name for candidate in interfaces for address in candidate.addresses}
    if name in labels:
        return ""
    with_address = {candidate.name for candidate in interfaces if candidate.addresses}
    bare = {candidate.name for candidate in interfaces} - with_address
    if not name:
        return "an empty entry between the commas is no interface"
    if name[0] in "^=":
        return f"Gloo reads {name[0]!r} as part of the name {name!r}; only NCCL supports that character"
    if name != name.strip() or name.strip("\"'") != name:
        return f"blanks and quotes are part of the name {name!r}"
    if name in bare:
        return f"{name} has no address"
    beginning = sorted(candidate for candidate in with_address if candidate.startswith(name))
    if beginning:
        return f"Gloo takes exact names: {name!r} is only how {', '.join(beginning[:4])} begins"
    return ""  # a name that is nowhere is the affair of ifname-no-match


def excludes_into_loopback(setting: IfnameSetting) -> bool:
    """Return True if the value is an exclusion and makes NCCL use a loopback address."""
    address = setting.choice.address
    return (
        setting.nccl is not None
        and setting.comm_id is None
        and ifname.parse(setting.nccl).exclude
        and address is not None
        and is_loopback(address)
    )


def is_misread(value: str, name: str = NCCL_VARIABLE) -> bool:
    """Return True if the value is wrong by itself, whatever interfaces there are: quotes, addresses."""
    wrong = misread(TABLE[name], value, NEWEST)
    return wrong is not None and wrong.weight == "error"
