"""NC210 peer-refused."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.network._peers import peer_answers
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.finding import Fix
from ncclcheck.model.snapshot import Snapshot

_FIX = Fix(
    "remove the rule that rejects TCP between the nodes or limits their connections, or the NAT between them",
    ("sudo nft list ruleset | grep -n 'reject\\|ct count'", "sudo iptables -S | grep 'REJECT\\|connlimit'"),
)


@check(
    "NC210",
    "peer-refused",
    "No node refuses connections from another node",
    needs=("interfaces",),
    nodes=2,
    joined=True,
)
def peer_refused(snapshot: Snapshot) -> Iterator[Answer]:
    """Connections between nodes are accepted, on the interface that NCCL uses and on an ephemeral port.

    ## Why it matters
    The probe's target was listening, so the refusal comes from a device in between: a firewall with a REJECT rule, a
    proxy, or another machine behind NAT. NCCL repeats refused connections for a minute and then fails.

    ## How to fix
    Look for REJECT rules on the target and on the path. Make sure that the address belongs to the target.

    ## Source
    connect(2), ECONNREFUSED; NCCL src/misc/socket.cc (retries: NCCL_SOCKET_RETRY_CNT from 2.24).
    """
    yield from peer_answers(
        snapshot,
        "refused",
        "connections are refused although the target listens, so a firewall rejects them or limits how many there are",
        _FIX,
    )
