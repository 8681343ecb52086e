"""NC824 rail-slow."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.matrix._matrix import ONE_RAIL, SOURCE, unmeasured
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.benchmarks.matrix import RailRates
from ncclcheck.model.finding import Evidence, Finding, Fix, NotApplicable
from ncclcheck.model.snapshot import Snapshot

_LEAST_PART = 0.85  # of a rail: what GPUs of different rails reach at least without being worth a word


@check("NC824", "rail-slow", "No GPU of the matrix is slow on its rail")
def rail_slow(snapshot: Snapshot) -> Iterator[Answer]:
    """GPU i of each node is as fast with GPU i of the other nodes as the others' are.

    ## Why it matters
    NCCL sends from GPU i to GPU i of the next node. A job is as fast as its slowest rail.

    ## How to fix
    Compare the network card that is nearest to the GPU, its link and its PCIe slot with those of other nodes. Where
    GPUs of different rails are slow everywhere, NCCL_CROSS_NIC=0 keeps the rings of NCCL on their rails, and PXN
    (NCCL_PXN_DISABLE unset) goes over NVLink instead.

    ## Source
    The rounds of all pairs, in which GPU i meets GPU i, all rails at once, and rounds in which it meets another one
    (ncclcheck/measure/matrix/rail_table.py). Which end is slow is known from two partners on. It does not apply where
    the nodes have one GPU or the processes see one each. A GPU whose rail is swapped is left to `rail-swapped`.
    """
    matrix = measured(snapshot.matrix)
    yield from unmeasured(snapshot)
    if matrix is None:
        return
    rails = matrix.rails
    if rails is None:
        yield NotApplicable(ONE_RAIL)
        return
    swapped = {(swap.host, swap.gpu) for swap in rails.swapped}
    for rail in rails.rails:
        for host in rail.slow:
            if (host, rail.gpu) not in swapped:
                yield _slow(host, rail.gpu, rail.rate_gbit_s)
    yield from _crossing(rails)


def _slow(host: str, gpu: int, usual_gbit_s: float) -> Finding:
    return Finding(
        "warning",
        f"GPU {gpu} of {host} is slow on its rail, with all other nodes; {usual_gbit_s:.3g} Gbit/s is usual there",
        (host,),
        (Evidence((host,), f"rail of GPU {gpu}", "slow", f"{usual_gbit_s:.3g} Gbit/s", SOURCE),),
        (
            Fix(
                f"compare the network card that is nearest to GPU {gpu} of {host} with that of another node",
                ("nvidia-smi topo -m", "ibstat"),
            ),
        ),
    )


def _crossing(rails: RailRates) -> Iterator[Finding]:
    """Yield that GPUs of different rails are slow, or do not meet, where the rails themselves are fine."""
    usual_gbit_s = max((rail.rate_gbit_s for rail in rails.rails), default=0.0)
    if rails.swapped or rails.cross_gbit_s is None or rails.cross_gbit_s >= _LEAST_PART * usual_gbit_s:
        return
    reached = f"reach {rails.cross_gbit_s:.3g} Gbit/s" if rails.cross_gbit_s else "do not reach each other"
    yield Finding(
        "info",
        f"GPUs of different rails {reached}, while a rail reaches {usual_gbit_s:.3g} Gbit/s: the rails are built for "
        "themselves",
        (),
        (Evidence((), "GPUs of different rails", reached, f"{usual_gbit_s:.3g} Gbit/s", SOURCE),),
        (Fix("keep the rings of NCCL on their rails: NCCL_CROSS_NIC=0, and NCCL_PXN_DISABLE unset"),),
    )
