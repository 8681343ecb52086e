"""The choice of a node as a report shows it: also where the facts hold only a part, and with what would change it."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.fact import NOT_ASKED, Fact, Missing
from ncclcheck.model.facts import NcclChoice, NodeFacts
from ncclcheck.nccl import changes
from ncclcheck.nccl.alike import once_per_kind
from ncclcheck.nccl.prediction import Prediction, node_choice, predict, predict_without_interface

NO_ADDRESSES = Missing("absent", "the facts hold no addresses")


def explain(facts: NodeFacts, version: str | None = None) -> Fact[Prediction]:
    """Return what NCCL uses on this node: the library's answer; the model's for a `version` or an unasked library.

    Facts of a recorded machine have no environment, no config files and often no addresses: the model then assumes
    that nothing is set, says so, and leaves the interface None without `fails`. Missing where nothing can be said.
    """
    return _explained(facts) if version is None else _explained_under(facts, version)


@once_per_kind
def _explained(facts: NodeFacts) -> Fact[Prediction]:
    return _explained_under(facts, None)


def _explained_under(facts: NodeFacts, version: str | None) -> Fact[Prediction]:
    completed, assumed = _completed(facts)
    choice, why = _chosen(facts, completed, version)
    if isinstance(choice, Missing):
        return choice
    return replace(
        choice,
        reason=choice.reason + assumed,
        changes=changes.what_would_change(completed, choice, version, why),
    )


def network_choice(facts: NodeFacts) -> Fact[Prediction]:
    """As `explain`, without what would change the choice, which is most of its work."""
    return _chosen(facts, _completed(facts)[0], None)[0]


def _chosen(
    facts: NodeFacts, completed: NodeFacts, version: str | None
) -> tuple[Fact[Prediction], Missing | None]:
    """Return the choice from the completed facts, and why its interface is not known."""
    choice: Fact[Prediction]
    if _holds_no_addresses(facts):
        choice = NO_ADDRESSES
    else:
        choice = node_choice(completed) if version is None else predict(completed, version)
    why = choice if isinstance(choice, Missing) else None
    if why is not None:
        choice = predict_without_interface(completed, version, why=why)
    return (why or choice if isinstance(choice, Missing) else choice), why


def _completed(facts: NodeFacts) -> tuple[NodeFacts, str]:
    """Return the facts with no variables set where a recorded machine has none, and what to add to the reason."""
    assumed = []
    if isinstance(facts.nccl, Missing) and facts.nccl.missing == "absent":
        facts = replace(facts, nccl=NcclChoice(NOT_ASKED, (), home_set=True))
        assumed.append("there is no nccl.conf")
    if isinstance(facts.environment, Missing) and facts.environment.missing == "absent":
        facts = replace(facts, environment={})
        assumed.append("no variable is set")
    return facts, f"; assuming that {' and '.join(assumed)} (not told)" if assumed else ""


def _holds_no_addresses(facts: NodeFacts) -> bool:
    """Return True for a recorded machine without addresses; a live one reports its settings and may have none."""
    if isinstance(facts.interfaces, Missing) or not isinstance(facts.nccl, Missing):
        return False
    return not any(interface.addresses for interface in facts.interfaces)
