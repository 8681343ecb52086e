"""NC821 link-outlier."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.fixes import compare_paths
from ncclcheck.checks.matrix._matrix import SOURCE, not_judged, open_paths, unmeasured, unmeasured_pairs
from ncclcheck.checks.measured import measured
from ncclcheck.checks.registry import Answer, check
from ncclcheck.checks.shared_hosts import host_text
from ncclcheck.model.finding import Evidence, Finding
from ncclcheck.model.snapshot import Snapshot


@check("NC821", "link-outlier", "No single path of the matrix is slow")
def link_outlier(snapshot: Snapshot) -> Iterator[Answer]:
    """No path between two nodes is slow in one direction, while others of its kind are not.

    ## Why it matters
    A ring or tree that uses this path is as slow as the path.

    ## How to fix
    Compare the routes of the two nodes (`tracepath`), their cables and switch ports.

    ## Source
    Every pair of up to 64 nodes (of more with `--full`) is measured once with all others; what was slow is measured
    twice more with few others, and named if it was slow each time in the same direction
    (ncclcheck/measure/matrix/slow_cells.py). Of four nodes or fewer all pairs are measured three or four times more,
    and a path is named if it is six standard errors below the others (ncclcheck/measure/matrix/few_cells.py). Without a
    slow path the check passes only if every pair of the nodes that answer was measured. Of more nodes without `--full`
    it is unknown, and says how many pairs were. It is unknown as well for the paths of a node that belongs to no leaf,
    and for a path that was slow at first and in some of its repeats, or whose repeats did not fit into the rounds.
    """
    matrix = measured(snapshot.matrix)
    for path in matrix.paths if matrix is not None else ():
        reached = "nothing comes through" if path.part is None else f"{path.part:.0%} of what is usual"
        times = f"{path.slow} of {path.tests}" if 0 < path.slow < path.tests else f"each of {path.tests}"
        yield Finding(
            "error",
            f"the path from {host_text(snapshot, path.from_host)} to {host_text(snapshot, path.to_host)} is slow in "
            f"{times} tests: {reached} ({path.usual_gbit_s:.3g} Gbit/s)",
            (path.from_host, path.to_host),
            (
                Evidence(
                    (path.from_host, path.to_host), "rate", reached, f"{path.usual_gbit_s:.3g} Gbit/s", SOURCE
                ),
            ),
            (compare_paths(path.to_host),),
        )
    if matrix is not None:
        yield from not_judged(matrix)
        yield from unmeasured_pairs(matrix)
        yield from open_paths(matrix)
    yield from unmeasured(snapshot)
