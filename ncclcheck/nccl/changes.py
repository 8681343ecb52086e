"""What would change NCCL's choice on a node: found by running the model with the change, never made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclConfigFile, NodeFacts
from ncclcheck.nccl import environment as nccl_environment
from ncclcheck.nccl import network, socket_interface, versions
from ncclcheck.nccl.candidates import candidate_interfaces, is_usable
from ncclcheck.nccl.prediction import (
    Prediction,
    effective_environment,
    predict,
    predict_without_interface,
)
from ncclcheck.nccl.transport import hca_words

_DECIDING = (
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_FAMILY",
    "NCCL_COMM_ID",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_IB_DEVICE_PCI_ORDER",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE",
    "NCCL_IB_ROCE_VERSION_NUM",
    "NCCL_IB_ROUTABLE_FLID_GID_INDEX",
)
_MOST_INTERFACES = 3
_NOT_NEEDED = Missing("absent", "distances are not compared")


def what_would_change(
    facts: NodeFacts, choice: Prediction, version: str | None, why_no_interface: Missing | None
) -> tuple[str, ...]:
    """One sentence for each setting, repair or version that would give another choice than `choice`."""
    rules = version or choice.version or versions.NEWEST
    facts = replace(facts, pci=_NOT_NEEDED)

    def run(
        changed: NodeFacts = facts, newer: str = rules, changes: Mapping[str, str | None] | None = None
    ) -> Fact[Prediction]:
        if why_no_interface is not None:
            return predict_without_interface(changed, newer, changes, why=why_no_interface)
        return predict(changed, newer, changes)

    base = run()
    if isinstance(base, Missing):
        return ()
    trials: list[tuple[str, Fact[Prediction]]] = []
    trials += [(how, run(without)) for how, without in _unset(facts, rules)]
    trials += [(f"{name}={value}", run(changes={name: value})) for name, value in _settings(facts, base)]
    trials += [(how, run(repaired)) for how, repaired in _repairs(facts)]
    trials += _other_versions(
        base, rules, [(milestone, run(newer=milestone)) for milestone in versions.MILESTONES]
    )
    return tuple(
        f"{how} would {effect}"
        for how, outcome in trials
        if not isinstance(outcome, Missing) and (effect := _effect(base, outcome))
    )


def _unset(facts: NodeFacts, version: str) -> Iterator[tuple[str, NodeFacts]]:
    """Yield the facts without each set variable that can change the choice.

    What is behind it comes to light then: the value of a config file, which is taken away in a further step.
    """
    effective = effective_environment(facts, version=version)
    if isinstance(effective, Missing):
        return
    for name in (deciding for deciding in _DECIDING if deciding in effective):
        left, steps = facts, list[str]()
        while (source := _source(left, name, version)) is not None:
            what = "it" if steps else name
            steps.append(f"removing {what} from {source}" if source != "environment" else f"unsetting {name}")
            left = _without(left, name, source)
            yield " and ".join(steps), left


def _source(facts: NodeFacts, name: str, version: str) -> str | None:
    if isinstance(facts.nccl, Missing) or isinstance(facts.environment, Missing):
        return None
    files, home_set = facts.nccl.config_files, facts.nccl.home_set
    return nccl_environment.source_of(name, facts.environment, files, version, home_set=home_set)


def _without(facts: NodeFacts, name: str, source: str) -> NodeFacts:
    if isinstance(facts.nccl, Missing) or isinstance(facts.environment, Missing):
        return facts
    if source == "environment":
        return replace(
            facts, environment={key: value for key, value in facts.environment.items() if key != name}
        )
    files = (_file_without(file, name) if file.path == source else file for file in facts.nccl.config_files)
    return replace(facts, nccl=replace(facts.nccl, config_files=tuple(files)))


def _file_without(file: NcclConfigFile, name: str) -> NcclConfigFile:
    if isinstance(file.settings, Missing):
        return file
    return replace(file, settings={key: value for key, value in file.settings.items() if key != name})


def _settings(facts: NodeFacts, base: Prediction) -> Iterator[tuple[str, str]]:
    """Yield settings worth trying: another interface, and no InfiniBand."""
    others = [name for name, _ in candidate_interfaces(facts) if name != base.interface]
    for name in others[:_MOST_INTERFACES]:
        alone = predict(facts, base.version, {"NCCL_SOCKET_IFNAME": name})
        is_enough = not isinstance(alone, Missing) and alone.interface == name
        yield "NCCL_SOCKET_IFNAME", name if is_enough else f"={name}"
    if base.network == network.IB:
        yield "NCCL_IB_DISABLE", "1"


def _repairs(facts: NodeFacts) -> Iterator[tuple[str, NodeFacts]]:
    """Yield the facts with one thing repaired: libibverbs, device files, a link that is down."""
    if not isinstance(facts.rdma, Missing):
        rdma = facts.rdma
        if network.is_unloadable(rdma.verbs_library):
            yield (
                "libibverbs on the loader's path",
                replace(facts, rdma=replace(rdma, verbs_library="libibverbs.so.1")),
            )
        if any(network.is_closed(port, rdma) for port in rdma.ports):
            names = tuple(port.uverbs for port in rdma.ports if not isinstance(port.uverbs, Missing))
            opened = replace(rdma, device_files=names or ("uverbs0",), unusable_files=())
            yield "access to the device files in /dev/infiniband", replace(facts, rdma=opened)
    interfaces = () if isinstance(facts.interfaces, Missing) else facts.interfaces
    for interface in interfaces:
        if interface.addresses and not socket_interface.is_running(interface) and not is_usable(interface):
            fixed = replace(interface, running=True, flags=tuple(dict.fromkeys((*interface.flags, "up"))))
            every = tuple(fixed if present is interface else present for present in interfaces)
            yield f"a working link on {interface.name}", replace(facts, interfaces=every)


def _other_versions(
    base: Prediction, version: str, outcomes: list[tuple[str, Fact[Prediction]]]
) -> list[tuple[str, Fact[Prediction]]]:
    """Return the nearest older and the nearest newer version that choose differently."""
    number_here = versions.parse(version)
    differing = [
        (versions.parse(change), f"NCCL {change}", outcome)
        for change, outcome in outcomes
        if not isinstance(outcome, Missing) and _effect(base, outcome)
    ]
    older = [(how, outcome) for number, how, outcome in differing if number < number_here]
    newer = [(how, outcome) for number, how, outcome in differing if number > number_here]
    return [*older[-1:], *newer[:1]]


def _effect(base: Prediction, changed: Prediction) -> str:
    """Return what is different, as the end of a sentence; empty where nothing is."""
    if changed.fails:
        return "" if base.fails else f"fail: {_failure(changed)}"
    parts = []
    if changed.interface is not None and (changed.interface, changed.address) != (
        base.interface,
        base.address,
    ):
        parts.append(f"take {changed.interface} {changed.address}")
    if changed.network is not None and (changed.network, changed.hcas) != (base.network, base.hcas):
        ports = f" with {hca_words(changed.hcas)}" if changed.hcas else ""
        parts.append(f"use {changed.network}{ports}")
    return " and ".join(parts)


def _failure(prediction: Prediction) -> str:
    return prediction.network_reason if prediction.interface is not None else prediction.reason
