"""NC802 bench-wrong-data."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.measured import bench_of, not_measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.bench import Point
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.snapshot import Snapshot


@check("NC802", "bench-wrong-data", "The collectives gave correct results")
def bench_wrong_data(snapshot: Snapshot) -> Iterator[Answer]:
    """Every element of the timed buffers has the correct result of the collective.

    ## Why it matters
    Wrong data without an error corrupts a training run. It comes from a bad GPU or its memory, a bad link or network
    card, a forced protocol that the hardware does not support (NCCL_PROTO=LL128), or a bug.

    ## How to fix
    Unset NCCL_ALGO and NCCL_PROTO. Run again on fewer nodes to find the faulty node, and check its ECC counters and
    links.

    ## Source
    The data depend on rank and position and are exact in any order of reduction; the timed buffers are verified.
    """
    bench = bench_of(snapshot)
    for point in bench.points if bench else ():
        if point.wrong is None:
            yield NotKnown(f"{point.op} of {point.size_bytes} bytes was not verified")
        elif point.wrong > 0:
            yield _finding(point)
    yield from not_measured(snapshot, points=True)


def _finding(point: Point) -> Finding:
    first = point.first_wrong
    host_of = {time.rank: time.host for time in point.ranks}
    saw = [rank for rank in point.wrong_ranks if rank in host_of] or ([first.rank] if first else [])
    everywhere = len(saw) == len(host_of) > 1
    hosts = tuple(dict.fromkeys(host_of[rank] for rank in saw if rank in host_of)) or tuple(
        dict.fromkeys(host_of.values())
    )
    where = (
        f"; the first: rank {first.rank} on {host_of.get(first.rank)}, iteration {first.iteration}, "
        f"element {first.offset}: {first.got} instead of {first.expected}"
        if first
        else ""
    )
    whose = (
        "; every rank has wrong elements, so one rank sent them, and which one is not known"
        if everywhere
        else ""
    )
    return Finding(
        "error",
        f"{point.op} of {point.size_bytes} bytes gave {point.wrong} wrong elements{where}{whose}: "
        "training would continue with wrong data",
        hosts,
        (
            Evidence(
                hosts,
                f"wrong elements of {point.op}, {point.size_bytes} bytes, {point.dtype}",
                str(point.wrong),
                "0",
                "verification of the timed buffers",
            ),
        ),
        (
            Fix(
                "unset NCCL_ALGO and NCCL_PROTO, and measure fewer nodes at a time to find the faulty node",
                ("nvidia-smi -q -d ECC",),
            ),
        ),
    )
