"""What NCCL uses on a node: the library's answer where it was asked, our model's where it was not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer, NcclConfigFile, NodeFacts
from ncclcheck.model.formats.same_object import SameObject
from ncclcheck.model.hardware import GpuNic, HcaChoice
from ncclcheck.nccl import environment as nccl_environment
from ncclcheck.nccl import socket_interface, versions
from ncclcheck.nccl.alike import once_per_kind
from ncclcheck.nccl.socket_interface import Choice
from ncclcheck.nccl.transport import Transport, choose_transport

MOST_NODES = 1 << 15  # whose choices are remembered
NEEDED = ("nccl", "environment", "interfaces")  # sections of the facts


class Prediction(Struct, frozen=True):
    """NCCL's choice on one node. `interface` and `address` are None where it fails; `reason` says how.

    `version` is None where no library is known. `disagreement` is one sentence where the library was asked and our
    model says something else, else empty. Network, HCAs and GPUDirect are always the model's, since only a running
    job can be asked; `network` is None where NCCL stops or where it is not known, and `network_reason` says which.
    `fails`: NCCL stops with an error. `changes` is empty here; `explanation.explain` fills it.
    """

    version: str | None
    library: str | None
    interface: str | None
    address: str | None
    source: Literal["asked", "predicted"]
    reason: str
    candidates: tuple[str, ...] = ()
    disagreement: str = ""
    network: str | None = None
    network_reason: str = ""
    hcas: tuple[HcaChoice, ...] = ()
    gpu_nic: tuple[GpuNic, ...] = ()
    gpudirect: str = ""
    fails: bool = False
    changes: tuple[str, ...] = ()


def node_choice(facts: NodeFacts) -> Fact[Prediction]:
    """Return what NCCL uses on this node in the job's environment: the library's answer, else the prediction.

    Missing where the library was not asked and a fact that the model needs is missing: never a guess.
    """
    return _node_choice(SameObject(facts))


@lru_cache(maxsize=MOST_NODES)
def _node_choice(node: SameObject[NodeFacts]) -> Fact[Prediction]:
    """Worked out once: most checks of a run ask for it, of every node."""
    return _choice_of_kind(node.value)


@once_per_kind
def _choice_of_kind(facts: NodeFacts) -> Fact[Prediction]:
    predicted = predict(facts)
    asked = facts.nccl if isinstance(facts.nccl, Missing) else facts.nccl.asked
    if isinstance(asked, Missing):
        return predicted
    return _as_asked(facts, asked, predicted)


def predict(
    facts: NodeFacts, version: str | None = None, changes: Mapping[str, str | None] | None = None
) -> Fact[Prediction]:
    """Return what NCCL of `version` (None: this node's) would use by the model, with `changes` made to the environment.

    A change to None unsets the variable; a config file may then still set it. Missing where a needed fact is.
    Raises UsageError when `version` is no version.
    """
    missing = _missing_section(facts)
    if missing is not None:
        return missing
    known = version or known_version(facts)
    choice = _choose(facts, known or versions.NEWEST, changes or {})
    if isinstance(choice, Missing):
        return choice
    transport = _transport(facts, known or versions.NEWEST, changes or {})
    return _predicted(facts, version, changes or {}, choice, transport)


def predict_changed(facts: NodeFacts, changes: Mapping[str, str | None]) -> Fact[Prediction]:
    """Return what `predict` does; of nodes that are alike it is worked out once."""
    return _changed_of_kind(facts, tuple(sorted(changes.items(), key=lambda change: change[0])))


@once_per_kind
def _changed_of_kind(facts: NodeFacts, changes: tuple[tuple[str, str | None], ...]) -> Fact[Prediction]:
    return predict(facts, changes=dict(changes))


def predict_interface(
    facts: NodeFacts, changes: Mapping[str, str | None] | None = None
) -> Fact[tuple[str, str]]:
    """Interface and address of `predict` alone, which is quick. Missing also where NCCL fails."""
    missing = _missing_section(facts)
    if missing is not None:
        return missing
    choice = _choose(facts, known_version(facts) or versions.NEWEST, changes or {})
    if isinstance(choice, Missing):
        return choice
    if choice.interface is None or choice.address is None:
        return Missing("absent", choice.reason)
    return choice.interface, choice.address


def predict_without_interface(
    facts: NodeFacts,
    version: str | None = None,
    changes: Mapping[str, str | None] | None = None,
    *,
    why: Missing,
) -> Fact[Prediction]:
    """Return the prediction of network and HCAs if the interface is not known for the reason `why`.

    It assumes there is one.
    Missing where not even the environment is known, or the RDMA devices.
    """
    known = version or known_version(facts)
    environment = _trusted_environment(facts, changes or {}, known or versions.NEWEST)
    if isinstance(environment, Missing):
        return environment
    transport = choose_transport(facts, why, environment, known or versions.NEWEST)
    if transport.network is None and not transport.fails and isinstance(facts.rdma, Missing):
        return why
    unknown = Choice(
        None, None, f"the interface is not known: {why.detail or why}", (), socket_interface.SUCCESS
    )
    return _predicted(facts, version, changes or {}, unknown, transport)


def _predicted(
    facts: NodeFacts,
    version: str | None,
    changes: Mapping[str, str | None],
    choice: Choice,
    transport: Transport,
) -> Prediction:
    known = version or known_version(facts)
    asked = facts.nccl if isinstance(facts.nccl, Missing) else facts.nccl.asked
    library = None if isinstance(asked, Missing) or version not in {None, asked.version} else asked.library
    return Prediction(
        version=known,
        library=library,
        interface=choice.interface,
        address=choice.address,
        source="predicted",
        reason=choice.reason + _set_in_files(choice.reason, facts, changes, known) + _whose_rules(known),
        candidates=choice.candidates,
        network=transport.network,
        network_reason=transport.network_reason
        + _set_in_files(transport.network_reason, facts, changes, known),
        hcas=transport.hcas,
        gpu_nic=transport.gpu_nic,
        gpudirect=transport.gpudirect,
        fails=choice.result_code != socket_interface.SUCCESS or transport.fails,
    )


def _transport(facts: NodeFacts, version: str, changes: Mapping[str, str | None]) -> Transport:
    environment = effective_environment(facts, changes, version)
    if isinstance(environment, Missing) or isinstance(facts.interfaces, Missing):
        return Transport()
    interfaces = socket_interface.network_interfaces(
        facts.interfaces, environment, version, resolved=_resolved(facts)
    )
    return choose_transport(facts, interfaces, environment, version)


def _set_in_files(
    reason: str, facts: NodeFacts, changes: Mapping[str, str | None], version: str | None
) -> str:
    """Return the suffix for a reason that names variables: the config file of each that is not set in the process."""
    if isinstance(facts.nccl, Missing) or isinstance(facts.environment, Missing):
        return ""
    environment = {**facts.environment, **changes}
    values = {name: value for name, value in environment.items() if value is not None}
    files, home_set = facts.nccl.config_files, facts.nccl.home_set
    sources = {
        name: nccl_environment.source_of(name, values, files, version or versions.NEWEST, home_set=home_set)
        for name in sorted(set(re.findall(r"\b(NCCL_\w+)=", reason)) - values.keys())
    }
    return "".join(f"; {name} is set in {source}" for name, source in sources.items() if source)


def _whose_rules(version: str | None) -> str:
    """Return the suffix for a reason if the rules were not read from the sources of that very version."""
    if version is None:
        return f"; no NCCL is known on this node, these are the rules of {versions.NEWEST}"
    if versions.parse(version) > versions.parse(versions.NEWEST):
        return f"; {version} is newer than {versions.NEWEST}, whose rules these are"
    if versions.parse(version) < versions.parse(versions.OLDEST):
        return f"; {version} is older than {versions.OLDEST}, whose rules these are"
    return ""


def chosen_interface(facts: NodeFacts) -> Fact[tuple[str, str]]:
    """Name and address of the interface NCCL uses on this node. Missing where that is not known, or where it fails."""
    choice = _missing_section(facts) or node_choice(facts)
    if isinstance(choice, Missing):
        return choice
    if choice.interface is None or choice.address is None:
        return Missing("absent", f"NCCL {choice.version or 'of any version'} fails here: {choice.reason}")
    return choice.interface, choice.address


def known_version(facts: NodeFacts) -> str | None:
    """Return the NCCL version of this node: as the library answered, was loaded, or as torch was built; else None."""
    return _known_version(SameObject(facts))


@lru_cache(maxsize=MOST_NODES)
def _known_version(node: SameObject[NodeFacts]) -> str | None:
    """Worked out once for each node: many checks ask for it."""
    facts = node.value
    known: list[Fact[str]] = []
    if not isinstance(facts.nccl, Missing) and not isinstance(facts.nccl.asked, Missing):
        known.append(facts.nccl.asked.version)
    if not isinstance(facts.software, Missing):
        known += [facts.software.nccl, facts.software.torch_nccl]
    return next(
        (text for text in known if not isinstance(text, Missing) and versions.is_version(text)),
        None,
    )


def effective_environment(
    facts: NodeFacts, changes: Mapping[str, str | None] | None = None, version: str | None = None
) -> Fact[dict[str, str]]:
    """Return the environment NCCL reads here after `changes`, with config files; Missing where a part is not known."""
    if changes or version:
        return _changed_environment(facts, changes, version)
    return _own_environment(SameObject(facts))


@lru_cache(maxsize=MOST_NODES)
def _own_environment(node: SameObject[NodeFacts]) -> Fact[dict[str, str]]:
    """Worked out once for each node: many checks ask for it."""
    return _changed_environment(node.value, None, None)


def _changed_environment(
    facts: NodeFacts, changes: Mapping[str, str | None] | None, version: str | None
) -> Fact[dict[str, str]]:
    if changes or isinstance(facts.environment, Missing) or isinstance(facts.nccl, Missing):
        return _environment(facts, changes or {}, version)
    rules = version or known_version(facts) or versions.NEWEST
    files = SameObject(facts.nccl.config_files)
    return _unchanged_environment(SameObject(facts.environment), files, rules, facts.nccl.home_set)


@lru_cache(maxsize=MOST_NODES)
def _unchanged_environment(
    environment: SameObject[dict[str, str]],
    files: SameObject[tuple[NcclConfigFile, ...]],
    rules: str,
    home_set: bool,
) -> Fact[dict[str, str]]:
    """Worked out once for all nodes that hold the same objects."""
    return _read(environment.value, files.value, rules, home_set)


def _environment(
    facts: NodeFacts, changes: Mapping[str, str | None], version: str | None
) -> Fact[dict[str, str]]:
    if isinstance(facts.environment, Missing):
        return facts.environment
    if isinstance(facts.nccl, Missing):
        return facts.nccl
    changed = {**facts.environment, **changes}
    environment = {name: value for name, value in changed.items() if value is not None}
    rules = version or known_version(facts) or versions.NEWEST
    return _read(environment, facts.nccl.config_files, rules, facts.nccl.home_set)


def _read(
    environment: dict[str, str], files: tuple[NcclConfigFile, ...], rules: str, home_set: bool
) -> Fact[dict[str, str]]:
    unknown = nccl_environment.unknown_file(environment, files, rules, home_set=home_set)
    if unknown is not None:
        return unknown
    return nccl_environment.effective(environment, files, rules, home_set=home_set)


def _choose(facts: NodeFacts, version: str, changes: Mapping[str, str | None]) -> Fact[Choice]:
    environment = _trusted_environment(facts, changes, version)
    if isinstance(environment, Missing):
        return environment
    if isinstance(facts.interfaces, Missing):
        return facts.interfaces
    choice = socket_interface.choose(facts.interfaces, environment, version, resolved=_resolved(facts))
    return Missing("unsupported", choice.reason) if choice.undecided else choice


def _trusted_environment(
    facts: NodeFacts, changes: Mapping[str, str | None], version: str
) -> Fact[dict[str, str]]:
    """Return the effective environment; Missing also where a plug-in may override it."""
    environment = effective_environment(facts, changes, version)
    if isinstance(environment, Missing):
        return environment
    plugin = environment.get("NCCL_ENV_PLUGIN", "")
    if plugin not in {"", "none"} and versions.parse(version) >= versions.ENV_PLUGIN_SINCE:
        return Missing(
            "unsupported", f"NCCL_ENV_PLUGIN={plugin} may override every variable of NCCL {version}"
        )
    return environment


def _resolved(facts: NodeFacts) -> dict[str, str]:
    if isinstance(facts.names, Missing) or isinstance(facts.names.addresses, Missing):
        return {}
    return {facts.names.hostname: facts.names.addresses[0]} if facts.names.addresses else {}


def _missing_section(facts: NodeFacts) -> Missing | None:
    for section in NEEDED:
        value = getattr(facts, section)
        if isinstance(value, Missing):
            return Missing(value.missing, f"{section} of the node: {value.detail or 'not known'}")
    return None


def _as_asked(facts: NodeFacts, asked: NcclAnswer, predicted: Fact[Prediction]) -> Fact[Prediction]:
    interface, address = _asked_pair(facts, asked, predicted)
    if asked.result_code == socket_interface.SUCCESS and interface is None:
        return Missing("error", f"NCCL answered {asked.address}, which is on no interface known here")
    failed = "" if asked.result_code == 0 else f"result code {asked.result_code}: "
    if isinstance(predicted, Missing):
        bare = Prediction(
            asked.version, asked.library, interface, address, "asked", f"{failed}{asked.message}"
        )
        is_failure = asked.result_code != socket_interface.SUCCESS
        return replace(bare, network_reason=f"not known: {predicted}", fails=is_failure)
    return replace(
        predicted,
        version=asked.version,
        library=asked.library,
        interface=interface,
        address=address,
        source="asked",
        reason=f"{failed}{asked.message} ({predicted.reason})",
        fails=asked.result_code != socket_interface.SUCCESS
        or (predicted.network is None and predicted.fails),
        disagreement=_disagreement(asked, (interface, address), predicted),
    )


def _asked_pair(
    facts: NodeFacts, asked: NcclAnswer, predicted: Fact[Prediction]
) -> tuple[str | None, str | None]:
    """Interface and local address of an answer. Under NCCL_COMM_ID the id carries that address, not the one bound."""
    if asked.result_code != 0 or isinstance(facts.interfaces, Missing):
        return (None, None) if asked.result_code != 0 else (asked.interface, asked.address)
    owner_of = {
        _plain(address.address): interface.name
        for interface in reversed(facts.interfaces)
        for address in reversed(interface.addresses)
    }
    name = asked.interface.partition(":")[0] if asked.interface else None
    address = _plain(asked.address) if asked.address else None
    if address in owner_of:
        return name or owner_of[address], address
    if not isinstance(predicted, Missing) and name in {None, predicted.interface}:
        return predicted.interface, predicted.address
    return name, next((text for text, owner in owner_of.items() if owner == name), None)


def _disagreement(asked: NcclAnswer, pair: tuple[str | None, str | None], predicted: Fact[Prediction]) -> str:
    if isinstance(predicted, Missing):
        return ""
    ours = (predicted.interface, predicted.address)
    bind_failed = asked.result_code == socket_interface.SYSTEM_ERROR and predicted.interface is not None
    if bind_failed and (asked.interface or predicted.interface) == predicted.interface:
        return ""  # the choice was made, and then could not be bound
    if pair == ours:
        return ""
    answer = " ".join(filter(None, pair)) or f"failure ({asked.message})"
    expected = " ".join(filter(None, ours)) or "failure"
    return (
        f"NCCL {asked.version} chose {answer}, our model says {expected} ({predicted.reason}): "
        "a bug of ncclcheck, please report it"
    )


def _plain(address: str) -> str:
    return address.partition("%")[0]
