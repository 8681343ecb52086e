"""The advice: settings with their proof, and notes that say why there are none."""

from __future__ import annotations

from ncclcheck.advice.gloo import GLOO_IFNAME, SOURCE
from ncclcheck.advice.interface import Proposal, decide
from ncclcheck.advice.reach import some_of
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer
from ncclcheck.model.report import Advice, Proof, Setting
from ncclcheck.model.snapshot import Node, Snapshot


def advise(snapshot: Snapshot) -> Advice:
    """The environment to use. Nothing stands in it without proof or source; `notes` say what is left out and why."""
    decision = decide(snapshot)
    settings: list[Setting] = []
    notes = list(decision.notes)
    for proposal in decision.proposals:
        proven = _proof(snapshot, proposal)
        if isinstance(proven, Missing):
            notes.append(f"NCCL: {proposal.why}. {_as_text(proposal)} was withheld: {proven.detail}")
        else:
            proof, evidence = proven
            settings += _settings(
                proposal.env_by_host, proposal.why, proof, f"{proposal.evidence}; {evidence}"
            )
    if decision.gloo.values:
        by_host: dict[str, dict[str, str | None]] = {
            host: {GLOO_IFNAME: value} for host, value in decision.gloo.values.items()
        }
        settings += _settings(by_host, decision.gloo.why, "rule", f"{decision.reach_evidence}; {SOURCE}")
    return Advice(tuple(settings), tuple(notes))


def _proof(snapshot: Snapshot, proposal: Proposal) -> Fact[tuple[Proof, str]]:
    """How far the proposal is proven; Missing when it must not be advised."""
    asked, unasked, versions = [], [], set()
    for node in snapshot.nodes:
        answer = _answer(snapshot, node, proposal)
        if isinstance(answer, Missing):
            if not _has_no_library(node):
                detail = f"NCCL of {node.host} could not be asked with it ({answer})"
                return Missing(answer.missing, detail)
            unasked.append(node.host)
        elif not _is_as_intended(answer, proposal.places[node.host]):
            chose = answer.interface or answer.address or f"nothing ({answer.message})"
            wanted = proposal.places[node.host][0]
            detail = f"NCCL {answer.version} of {node.host}, asked with it, chose {chose} instead of {wanted}"
            return Missing("error", detail)
        else:
            asked.append(node.host)
            versions.add(answer.version)
    names = "/".join(dict.fromkeys(interface for interface, _ in proposal.places.values()))
    said = f"NCCL {', '.join(sorted(versions))}, asked with it on {len(asked)} nodes, chose {names}"
    if not unasked:
        return "asked", said
    rest = f"not asked on {some_of(unasked)}, which have no libnccl: {names} there is our model's prediction"
    return "rule", f"{said}; {rest}" if asked else rest


def _answer(snapshot: Snapshot, node: Node, proposal: Proposal) -> Fact[NcclAnswer]:
    wanted = proposal.env_by_host[node.host]
    for confirmation in snapshot.confirmations:
        if confirmation.host == node.host and confirmation.env == wanted:
            return confirmation.answer
    return Missing("absent", "it was not asked")


def _has_no_library(node: Node) -> bool:
    nccl = node.facts.nccl
    return (
        not isinstance(nccl, Missing) and isinstance(nccl.asked, Missing) and nccl.asked.missing == "absent"
    )


def _is_as_intended(answer: NcclAnswer, place: tuple[str, str]) -> bool:
    interface, address = place
    name = answer.interface.partition(":")[0] if answer.interface else interface
    return (
        answer.result_code == 0 and name == interface and (answer.address or "").partition("%")[0] == address
    )


def _settings(
    env_by_host: dict[str, dict[str, str | None]], why: str, proof: Proof, evidence: str
) -> list[Setting]:
    """One setting per variable and value; without hosts where it is the same on all."""
    found = []
    for name in dict.fromkeys(name for env in env_by_host.values() for name in env):
        hosts_by_value: dict[str | None, list[str]] = {}
        for host, env in env_by_host.items():
            if name in env:
                hosts_by_value.setdefault(env[name], []).append(host)
        for value, hosts in hosts_by_value.items():
            everywhere = len(hosts) == len(env_by_host)
            found.append(Setting(name, value, () if everywhere else tuple(hosts), why, proof, evidence))
    return found


def _as_text(proposal: Proposal) -> str:
    settings = {
        name if value is None else f"{name}={value}": value
        for env in proposal.env_by_host.values()
        for name, value in env.items()
    }
    return " and ".join(f"unsetting {text}" if value is None else text for text, value in settings.items())
