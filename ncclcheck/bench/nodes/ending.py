"""End the workers of a benchmark on all nodes, wait for that, and name those that did not die."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.bench.nodes.bench_watch import BenchWatch
from ncclcheck.exchange.deadline import Deadline
from ncclcheck.timeouts import END_GPU_WORKERS_S, END_WORKERS_S, VERDICT_S


def end_sets(watches: Sequence[BenchWatch], left_s: float) -> str:
    """Tell the nodes to end these workers, wait until those that still answer have done so, and return what is left.

    That is what may still hold GPUs or ports, so that nothing else may be started there: a sentence; empty: nothing.
    """
    for watch in watches:
        watch.stop()
    longest_s = END_GPU_WORKERS_S if any(watch.on_nccl for watch in watches) else END_WORKERS_S
    deadline = Deadline(min(longest_s, max(VERDICT_S, left_s)))
    return "; ".join(filter(None, [watch.await_end(deadline) for watch in watches]))
