"""What `matrix` found, for people: the leaves, the bisection, and a map of the cells in the order of the leaves."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.model.benchmarks.matrix import FabricMatrix
from ncclcheck.model.formats.prose import plural
from ncclcheck.model.report import Report
from ncclcheck.report.text.fold import fold_hosts
from ncclcheck.report.text.page import Line, Span, line
from ncclcheck.report.text.plain import plain

MOST_MAPPED = 64
_NAME_LENGTH = 20
_MOST_OPEN = 8  # paths that are listed one by one
_WHOLE = 0.95  # of the reference and more is drawn as a full cell


def matrix_lines(report: Report) -> Iterator[Line]:
    """Yield the leaves or that there are none, the ratio of the bisection, slow nodes and paths, and the map."""
    matrix = report.matrix
    if matrix is None:
        return
    reached = f"a pair within a leaf reaches {matrix.reference_gbit_s:.3g} Gbit/s each way"
    if not matrix.leaves and not matrix.reference_gbit_s:
        reached = "no pair of nodes that answer finished a test"
    yield line(Span("matrix", "bold"), f": {plural(matrix.rounds, 'round')}; {reached}")
    yield from _leaves(matrix)
    bisection = matrix.oversubscription
    if bisection is not None:
        slow_direction = matrix.slow_way
        across = (
            "across"
            if slow_direction is None
            else f"from {slow_direction[0]} to {slow_direction[1]} ({bisection.back_gbit_s:.3g} Gbit/s back)"
        )
        yield line(
            f"all nodes at once: {bisection.within_gbit_s:.3g} Gbit/s within, {bisection.across_gbit_s:.3g} Gbit/s "
            f"{across}: {bisection.ratio:.2f}:1 (95 % interval {bisection.low:.2f} to {bisection.high:.2f}, "
            f"{plural(bisection.repeats, 'repeat')})",
            indent=2,
        )
    yield from _round_trips(matrix)
    yield from _rails(matrix)
    for path in matrix.paths:
        part = "nothing" if path.part is None else f"{path.part:.0%} of usual"
        yield line(f"slow path: {plain(path.from_host)} to {plain(path.to_host)}, {part}", indent=2)
    for undecided in matrix.open_paths[:_MOST_OPEN]:
        where = f"{plain(undecided.from_host)} to {plain(undecided.to_host)}"
        yield line(
            f"not decided: {where}, slow in {undecided.slow} of {undecided.tests} tests",
            indent=2,
        )
    if len(matrix.open_paths) > _MOST_OPEN:
        yield line(f"not decided: {len(matrix.open_paths) - _MOST_OPEN} further paths", indent=2)
    yield from _map(matrix)


def why_no_leaves(matrix: FabricMatrix) -> str:
    """Return why one group of nodes is not called flat."""
    return "it takes four nodes that answer" if matrix.is_finished else "the matrix was not finished"


def _leaves(matrix: FabricMatrix) -> Iterator[Line]:
    if matrix.flat:
        yield line("flat: these tests show no leaves that a job could feel", indent=2)
    elif len(matrix.leaves) == 1:
        yield line(f"leaves: not known, {why_no_leaves(matrix)}", indent=2)
    else:
        for name, hosts in matrix.named_leaves.items():
            yield line(f"{name}: {fold_hosts(hosts)}", indent=2)
    if matrix.apart:
        yield line(f"in no leaf: {fold_hosts(matrix.apart)}", indent=2)


def _round_trips(matrix: FabricMatrix) -> Iterator[Line]:
    trips = matrix.round_trips
    if trips is None:
        return
    parts = [
        f"{us:.3g} us {where}"
        for us, where in ((trips.within_us, "within leaves"), (trips.across_us, "across leaves"))
        if us is not None and trips.across_us is not None
    ]
    split = f": {', '.join(parts)}" if parts else ""
    yield line(
        f"round trips: {trips.median_us:.3g} us, the median of the shortest of each pair{split}", indent=2
    )
    for group in trips.groups:
        yield line(f"near by round trips: {fold_hosts(group)}", indent=4)


def _rails(matrix: FabricMatrix) -> Iterator[Line]:
    """Yield a row per rail: the GPU, its rate, and who is slow on it."""
    rails = matrix.rails
    if rails is None:
        return
    for rail in rails.rails:
        slow = f"; slow on {fold_hosts(rail.slow)}" if rail.slow else ""
        yield line(
            f"rail {rail.gpu}, GPU {rail.gpu} with GPU {rail.gpu}: {rail.rate_gbit_s:.3g} Gbit/s{slow}",
            indent=2,
        )
    if rails.cross_gbit_s is not None:
        reached = f"{rails.cross_gbit_s:.3g} Gbit/s" if rails.cross_gbit_s else "no test finished"
        yield line(f"GPUs of different rails: {reached}", indent=2)
    for swap in rails.swapped:
        yield line(f"swapped: GPU {swap.gpu} of {plain(swap.host)} is on rail {swap.rail}", indent=2)


def leaf_order(matrix: FabricMatrix) -> list[str]:
    """Return the hosts leaf by leaf, then those in no leaf, those that were lost, and others that have a cell."""
    ends = {host for cell in matrix.cells for host in (cell.from_host, cell.to_host)}
    known = dict.fromkeys([*matrix.order, *matrix.apart, *(node.host for node in matrix.nodes)])
    return [*known, *sorted(ends - known.keys())]


def _map(matrix: FabricMatrix) -> Iterator[Line]:
    hosts = leaf_order(matrix)
    if len(hosts) > MOST_MAPPED:
        return
    part_of = {
        (cell.from_host, cell.to_host): None if cell.gbit_s is None else cell.gbit_s / matrix.reference_gbit_s
        for cell in matrix.cells
        if cell.gbit_s is None or matrix.reference_gbit_s
    }
    yield line(
        "row sends to column, tenths of the usual rate; # all, x did not finish, . not measured:",
        indent=2,
    )
    width = max(len(plain(host)[:_NAME_LENGTH]) for host in hosts)
    for source in hosts:
        row = "".join(_mark(part_of, source, target) for target in hosts)
        yield line(f"{plain(source)[:_NAME_LENGTH].ljust(width)} {row}", indent=2, wrap=False)


def _mark(part_of: dict[tuple[str, str], float | None], source: str, target: str) -> str:
    if source == target:
        return " "
    if (source, target) not in part_of:
        return "."
    part = part_of[source, target]
    if part is None:
        return "x"
    return "#" if part >= _WHOLE else str(min(9, int(part * 10)))
