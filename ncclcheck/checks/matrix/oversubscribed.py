"""NC820 oversubscribed."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.matrix._matrix import SOURCE, unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.benchmarks.matrix import FabricMatrix, Oversubscription
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot

_LEAST_RATIO = 1.15


@check("NC820", "oversubscribed", "All nodes at once are as fast across leaves as within them")
def oversubscribed(snapshot: Snapshot) -> Iterator[Answer]:
    """Nodes of different leaves are as fast as nodes of the same leaf while all of them send.

    ## Why it matters
    Rings and trees that cross leaves more often than necessary are as slow as the trunks between them. NCCL follows the
    order of the nodes that it is given; it does not look for leaves.

    ## How to fix
    Order the hosts by leaf (`ncclcheck matrix --print hostfile`), or tell the scheduler (`--print slurm-tree`). If the
    network was bought without oversubscription, look for trunks that are down. Between two leaves it may be slow in one
    direction only: that is an error, since it is a fault and no design.

    ## Source
    Matchings of all nodes within and across leaves, alternating (ncclcheck/measure/matrix/bisection.py); the interval
    is Student's, 95 %, over the repeats.
    """
    matrix = measured(snapshot.matrix)
    ratio = matrix.oversubscription if matrix is not None else None
    if matrix is not None and ratio is not None and matrix.slow_way is not None:
        yield _one_way(matrix, ratio, *matrix.slow_way)
    elif matrix is not None and ratio is not None and ratio.low > _LEAST_RATIO:
        interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
        where = (
            "leaves"
            if len(matrix.leaves) > 1
            else "the two halves of the nodes, in the order of their names,"
        )
        yield Finding(
            "warning",
            f"the network between {where} is oversubscribed {ratio.ratio:.1f}:1 (95 % interval {interval}): all "
            f"nodes at once reach {ratio.across_gbit_s:.3g} Gbit/s each across, "
            f"{ratio.within_gbit_s:.3g} Gbit/s within",
            tuple(host for leaf in matrix.leaves for host in leaf),
            _leaves(matrix),
            (Fix("order the hosts by leaf", ("ncclcheck matrix --quiet --print hostfile > hosts",)),),
        )
    elif matrix is not None and ratio is None and matrix.is_finished:
        yield NotKnown("it takes four nodes to tell")
    yield from unmeasured(snapshot)


def _leaves(matrix: FabricMatrix) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(hosts, name, f"{len(hosts)} nodes that are fast with each other", "", SOURCE)
        for name, hosts in matrix.named_leaves.items()
    )


def _one_way(matrix: FabricMatrix, ratio: Oversubscription, source: str, target: str) -> Finding:
    """Return the finding of a trunk that is slow in one direction, which no network is by design."""
    return Finding(
        "error",
        f"the network from {source} to {target} is slow, and only in this direction: all nodes at once reach "
        f"{ratio.across_gbit_s:.3g} Gbit/s each, {ratio.ratio:.1f} times less (95 % interval {ratio.low:.2f} to "
        f"{ratio.high:.2f}) than within a leaf ({ratio.within_gbit_s:.3g} Gbit/s), and {ratio.back_gbit_s:.3g} Gbit/s "
        "back: a fault of the trunk, no design",
        tuple(host for leaf in matrix.leaves for host in leaf),
        _leaves(matrix),
        (
            Fix(
                f"look at the trunk between {source} and {target}: links of it that are down or take errors, and how "
                "traffic is spread over them in that direction"
            ),
        ),
    )
