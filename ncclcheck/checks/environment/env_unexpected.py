"""NC608 env-unexpected."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ncclcheck.checks.environment._settings import ENVIRONMENT, HIDDEN, EnvironmentPlace, places
from ncclcheck.checks.expectations import NOT_SET, Seen, unexpected
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.policy.expected import Expectation, Presence
from ncclcheck.model.snapshot import Node, Snapshot
from ncclcheck.nccl.prediction import effective_environment

_UNSEEN = Missing("denied", "its value is not shown, since it may be secret")


@check(
    "NC608",
    "env-unexpected",
    "The variables of the job meet the policy",
    needs=("environment",),
    image=True,
    demands=("environment",),
)
def env_unexpected(snapshot: Snapshot) -> Iterator[Answer]:
    """Every rank of every node meets `[environment]` of the policy (`--expect`).

    `NAME = "value"` (or a list of values) is the required value, `true` requires that it is set, `false` that it is
    not. For NCCL's variables its configuration files count as well, as NCCL reads them.

    ## Why it matters
    Settings that a cluster needs (its interface, its HCAs, its plug-in) are forgotten in a new job script, and
    left-over workarounds stay in old ones; either costs bandwidth or hangs, on the nodes concerned only.

    ## How to fix
    Set or remove the variable where the job is started, or correct the policy. The finding names the line.

    ## Source
    The policy, by file and line; the environment that ncclcheck was started with; nccl.conf.
    """

    def reader(node: Node, expectation: Expectation) -> Iterator[Seen]:
        name = expectation.key.partition(".")[2]
        if isinstance(node.facts.environment, Missing):
            yield Seen(name, node.facts.environment, ENVIRONMENT)
        for place in places(replace(snapshot, nodes=(node,))):
            if place.changed is None or name in place.changed:
                rank = "" if place.rank is None else f" of rank {place.rank}"
                yield Seen(
                    f"{name}{rank}", _value(place, name, expectation), place.sources.get(name, ENVIRONMENT)
                )

    yield from unexpected(
        snapshot, {"environment": reader}, ("set it as the policy requires where the job is started")
    )


def _value(place: EnvironmentPlace, name: str, expectation: Expectation) -> Fact[str]:
    value = place.environment.get(name)
    if value in HIDDEN:
        return "set" if isinstance(expectation.wanted, Presence) else _UNSEEN
    if value is None and name.startswith("NCCL_"):
        everything = effective_environment(place.facts)
        if isinstance(everything, Missing):  # it may stand in a file that could not be read
            return everything
    return NOT_SET if value is None else value
