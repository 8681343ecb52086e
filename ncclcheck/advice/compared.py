"""What a benchmark has to run to compare the job's environment as it is with the advised one."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ncclcheck.advice.gloo import gloo_places
from ncclcheck.advice.proof import settle
from ncclcheck.advice.rule import Changes
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.prediction import chosen_interface

Places = dict[str, tuple[str, str]]  # host -> (interface, address)


class AsIsAndAdvised(Struct, frozen=True):
    """The two environments. `changes` on top of the job's own is the advised one: everything `env` would print.

    The places are those of `chooser`: NCCL's, or Gloo's where only Gloo's are to change. A host on which it fails
    as-is has no place there. Where as-is and advised are the same places, the settings change something else.
    """

    changes: Changes
    chooser: Literal["NCCL", "Gloo"]
    as_is: Places
    advised: Places


def as_is_and_advised(snapshot: Snapshot) -> Fact[AsIsAndAdvised]:
    """Return the environment as it is and as advised before any comparison; Missing where nothing is advised."""
    settled = settle(snapshot)
    if not settled.parts:
        why = "; ".join(settled.notes) or "nothing is wrong"
        return Missing("absent", f"nothing is advised, so there is nothing to compare: {why}")
    subjects = {part.subject for part in settled.parts}
    if subjects == {"Gloo"} and settled.decision.gloo.network is not None:
        advised = settled.decision.gloo.network.places
        return AsIsAndAdvised(settled.changes, "Gloo", gloo_places(snapshot), advised)
    as_is = _nccl_places(snapshot)
    advised = settled.decision.proposals[0].places if "sockets" in subjects else as_is
    return AsIsAndAdvised(settled.changes, "NCCL", as_is, advised)


def _nccl_places(snapshot: Snapshot) -> Places:
    chosen = {node.host: chosen_interface(node.facts) for node in snapshot.nodes}
    return {host: place for host, place in chosen.items() if not isinstance(place, Missing)}
