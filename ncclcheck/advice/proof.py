"""How far each part of the advice is proven: by the library's own answers, or by a rule with its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ncclcheck.advice.gloo import GLOO_IFNAME, SOURCE
from ncclcheck.advice.interface import Decision, decide
from ncclcheck.advice.rule import Changes, Rule
from ncclcheck.advice.sockets import Proposal, Purpose
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NcclAnswer
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.report import Proof
from ncclcheck.model.snapshot import Node, Snapshot

Subject: TypeAlias = Literal["sockets", "Gloo", "network"]


class Part(Struct, frozen=True):
    """Settings that are advised together or not at all. `subject`: whose choice they change, `purpose`: what for."""

    subject: Subject
    env_by_host: Changes
    why: str
    proof: Proof
    evidence: str
    purpose: Purpose = "speed"


class Settled(Struct, frozen=True):
    """The parts that are proven before anything is measured, and the sentences about the rest."""

    decision: Decision
    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    @property
    def changes(self) -> Changes:
        """All parts as one environment per host."""
        merged: Changes = {}
        for part in self.parts:
            for host, env in part.env_by_host.items():
                merged.setdefault(host, {}).update(env)
        return {host: env for host, env in merged.items() if env}


def settle(snapshot: Snapshot) -> Settled:
    """Return the advice that the library's answers and the rules prove. A contradicted proposal becomes a note."""
    decision = decide(snapshot)
    parts: list[Part] = []
    notes = list(decision.notes)
    for proposal in decision.proposals:
        proven = _asked(snapshot, proposal)
        if isinstance(proven, Missing):
            text = in_words(proposal.env_by_host)
            notes.append(f"NCCL: {proposal.why}. {text} was withheld: {proven.detail}")
        else:
            proof, proof_text = proven
            evidence = f"{proposal.evidence}; {proof_text}"
            purpose = proposal.purpose
            parts.append(Part("sockets", proposal.env_by_host, proposal.why, proof, evidence, purpose))
    parts += [
        Part("network", rule.env_by_host, rule.why, "rule", rule.evidence) for rule in _needed(decision.rules)
    ]
    gloo = decision.gloo
    if gloo.values:
        by_host: Changes = {
            node.host: {GLOO_IFNAME: gloo.values[node.host]} if node.host in gloo.values else {}
            for node in snapshot.nodes
        }
        parts.append(Part("Gloo", by_host, gloo.why, "rule", f"{decision.reach_evidence}; {SOURCE}"))
    return Settled(decision, tuple(parts), tuple(notes))


def _needed(rules: Sequence[Rule]) -> Iterator[Rule]:
    """Yield the rules, without those that a later rule overrides: a list of ports that is unset and then set again."""
    for position, rule in enumerate(rules):
        later = {
            (host, name)
            for later in rules[position + 1 :]
            for host, env in later.env_by_host.items()
            for name in env
        }
        left = {
            host: {name: value for name, value in env.items() if (host, name) not in later}
            for host, env in rule.env_by_host.items()
        }
        if any(left.values()):
            yield replace(rule, env_by_host=left)


def in_words(env_by_host: Changes) -> str:
    """Return the settings as prose: `NCCL_SOCKET_IFNAME=eth0 and unsetting NCCL_COMM_ID`."""
    settings = {
        name if value is None else f"{name}={value}": value
        for env in env_by_host.values()
        for name, value in env.items()
    }
    return " and ".join(f"unsetting {text}" if value is None else text for text, value in settings.items())


def _asked(snapshot: Snapshot, proposal: Proposal) -> Fact[tuple[Proof, str]]:
    """How far the libraries confirm the proposal; Missing when it must not be advised."""
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
            proposed_place = proposal.places[node.host][0]
            detail = f"NCCL {answer.version} of {node.host}, asked with it, chose {chose} instead of {proposed_place}"
            return Missing("error", detail)
        else:
            asked.append(node.host)
            versions.add(answer.version)
    names = "/".join(dict.fromkeys(interface for interface, _ in proposal.places.values()))
    proof_text = f"NCCL {', '.join(sorted(versions))}, asked with it on {len(asked)} nodes, chose {names}"
    if not unasked:
        return "asked", proof_text
    rest = (
        f"not asked on {listed(unasked, 4)}, which have no libnccl: {names} there is our model's prediction"
    )
    return "rule", f"{proof_text}; {rest}" if asked else rest


def _answer(snapshot: Snapshot, node: Node, proposal: Proposal) -> Fact[NcclAnswer]:
    proposed_env = proposal.env_by_host[node.host]
    for confirmation in snapshot.confirmations:
        if confirmation.host == node.host and confirmation.env == proposed_env:
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
