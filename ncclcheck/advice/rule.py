"""What a rule of NCCL says about a change that no library can be asked about: its network, ports and GIDs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.hardware import RdmaPort
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import Prediction, effective_environment, predict_changed

Changes: TypeAlias = dict[str, dict[str, str | None]]  # host -> variable -> value; None: unset
NOT_ASKABLE = "NCCL answers this only in a running job on GPUs, so it is our model's prediction"


class Rule(Struct, frozen=True):
    """A change with the rule that it follows. `evidence` names the source."""

    env_by_host: Changes
    why: str
    evidence: str


def merged(*changes: Mapping[str, Mapping[str, str | None]]) -> Changes:
    """One change, in which the later ones win."""
    together: Changes = {}
    for change in changes:
        for host, env in change.items():
            together.setdefault(host, {}).update(env)
    return together


def predictions(
    snapshot: Snapshot, changes: Mapping[str, Mapping[str, str | None]]
) -> Fact[dict[str, Prediction]]:
    """Return the model's prediction for every node under the changes; Missing where it has none for a node."""
    found = {}
    for node in snapshot.nodes:
        predicted = predict_changed(node.facts, changes.get(node.host, {}))
        if isinstance(predicted, Missing):
            return Missing(predicted.missing, f"{node.host}: {predicted.detail}")
        found[node.host] = predicted
    return found


def value_of(facts: NodeFacts, name: str, changes: Mapping[str, str | None]) -> str | None:
    """Return the value that NCCL reads for the variable on the node; None where it is unset, or not known."""
    environment = effective_environment(facts, changes)
    return None if isinstance(environment, Missing) else environment.get(name)


def used_ports(facts: NodeFacts, prediction: Prediction) -> tuple[RdmaPort, ...]:
    """Return the ports of a prediction."""
    rdma = facts.rdma
    port_by_name = (
        {} if isinstance(rdma, Missing) else {(port.device, port.port): port for port in rdma.ports}
    )
    return tuple(
        port_by_name[hca.device, hca.port]
        for hca in prediction.hcas
        if (hca.device, hca.port) in port_by_name
    )
