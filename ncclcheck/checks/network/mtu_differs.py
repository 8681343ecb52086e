"""NC213 mtu-differs."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.chosen import chosen, not_chosen
from ncclcheck.checks.majority import compare, evidence, sentence
from ncclcheck.checks.network._reach import directions
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check(
    "NC213",
    "mtu-differs",
    "NCCL's interface has the same MTU on all nodes",
    needs=("interfaces", "environment", "nccl"),
    nodes=2,
    joined=True,
)
def mtu_differs(snapshot: Snapshot) -> Iterator[Answer]:
    """The interface that NCCL uses has the same MTU on every node.

    ## Why it matters
    TCP agrees on the smaller packet size of the two ends, so unequal MTUs often work. They indicate a node or a
    switch port that was set up by hand. If a switch in between has the smaller MTU, large packets are lost:
    mtu-blackhole tests that.

    ## How to fix
    Set one MTU on all nodes and on the switch ports between them.

    ## Source
    RFC 9293 3.7.1 (MSS option); netdevice(7).
    """
    seen = chosen(snapshot)
    mtus = compare(
        (choice.host, mtu) for choice in seen if not isinstance(mtu := choice.interface.mtu, Missing)
    )
    if mtus.differs:
        names = {choice.host: choice.name for choice in seen}
        odd = mtus.odd[0]
        target = mtus.usual.value if mtus.usual else max(group.value for group in mtus.groups)
        stalled = any(probe.outcome == "stalled" for probe in directions(snapshot, "mtu"))
        proof = (
            "large packets are lost: see mtu-blackhole"
            if stalled
            else "large packets may get lost between them"
        )
        yield Finding(
            "warning",
            f"the MTU of NCCL's interface differs: {sentence(mtus)}: {proof}",
            mtus.odd_hosts,
            evidence(mtus, "MTU of NCCL's interface", f"/sys/class/net/{names[odd.hosts[0]]}/mtu"),
            (
                Fix(
                    "set one MTU on all nodes and on the switch ports between them",
                    (f"ip link set dev {names[odd.hosts[0]]} mtu {target}",),
                    risk="an MTU larger than that of a switch in between loses packets",
                ),
            ),
        )
    for choice in seen:
        if isinstance(choice.interface.mtu, Missing):
            yield NotKnown(f"MTU of {choice.name}: {choice.interface.mtu}", (choice.host,))
    yield from not_chosen(snapshot)
