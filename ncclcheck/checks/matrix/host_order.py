"""NC827 host-order."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.matrix._matrix import SOURCE, unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.measure.matrix.ring_order import RingOrder, ring_order
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.formats.prose import listed
from ncclcheck.model.snapshot import Snapshot

_LEAST_GAIN = 1.1
_MOST_SHOWN = 8  # hosts


@check(
    "NC827", "host-order", "A ring over the nodes in the order of the job crosses leaves no more than it must"
)
def host_order(snapshot: Snapshot) -> Iterator[Answer]:
    """The nodes of the job are ordered leaf by leaf, so that a ring leaves each leaf once.

    ## Why it matters
    NCCL builds its rings and trees over the nodes in the order of their ranks, and looks for no switches. Each further
    hop between leaves takes a share of the same trunk.

    ## How to fix
    Start the job on the hosts leaf by leaf (`ncclcheck matrix --print hostfile`), or tell the scheduler where the
    leaves are (`--print slurm-tree`, `--print labels`).

    ## Source
    NVIDIA/nccl issue 1340 (rings follow the order of the nodes as given). Hops between leaves of a ring over the nodes
    by node rank, against one per leaf; its rate is that of the slowest hop, if a trunk carries what all nodes of its
    leaf reached together across it (ncclcheck/measure/matrix/ring_order.py). A warning where the ring loses a tenth.
    """
    matrix = measured(snapshot.matrix)
    yield from unmeasured(snapshot)
    if matrix is None or not matrix.is_finished:
        return
    if not matrix.leaves:
        yield NotKnown("no pair of nodes that answer finished a test")
        return
    hosts = tuple(node.host for node in sorted(snapshot.nodes, key=lambda node: node.node_rank))
    ring = ring_order(hosts, matrix)
    if ring is not None and ring.crossings > ring.least:
        yield _finding(ring, hosts)


def _finding(ring: RingOrder, hosts: tuple[str, ...]) -> Finding:
    rates = ring.rates
    loses = rates is not None and rates.best_gbit_s >= _LEAST_GAIN * rates.ordered_gbit_s
    cost = ""
    if rates is not None:
        cost = (
            f": by the measured rates it reaches {rates.ordered_gbit_s:.3g} Gbit/s instead of {rates.best_gbit_s:.3g}"
            if loses
            else ", and the trunks carry that"
        )
    return Finding(
        "warning" if loses else "info",
        f"a ring over the nodes in the order of the job goes {ring.crossings} times from leaf to leaf, where "
        f"{ring.least} times are enough{cost}",
        hosts,
        (
            Evidence(
                hosts,
                "hops between leaves",
                f"{ring.crossings} in the order {listed(hosts, _MOST_SHOWN)}",
                f"{ring.least}, leaf by leaf",
                SOURCE,
            ),
        ),
        (
            Fix(
                "start the job on the hosts leaf by leaf",
                ("ncclcheck matrix --quiet --print hostfile > hosts",),
            ),
        ),
    )
