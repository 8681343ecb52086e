"""What `--min-busbw`, `--baseline` and `--tolerance` demand of the benchmark; what cannot be met is refused here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ncclcheck.cli.documents import load
from ncclcheck.measure.baseline import baseline_point
from ncclcheck.measure.mesh.mesh_plan import ops_of
from ncclcheck.model.bench import Backend, BenchResult
from ncclcheck.model.bench_demands import (
    MOST_FLOORS,
    TOLERANCE,
    Baseline,
    BenchDemands,
    Floor,
    parse_floor,
)
from ncclcheck.model.bench_setup import BenchRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import BenchReport, Report
from ncclcheck.model.saved import Saved
from ncclcheck.model.units import format_size

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{0,6})?|\.\d{1,6})\s*%?", re.ASCII)
_MOST_PERCENT = 90.0


def bench_demands(
    option_values: Mapping[str, Any], request: BenchRequest, floors: Iterable[Floor] = ()
) -> BenchDemands:
    """Return what the command line and the policy's `floors` demand. Raises UsageError.

    A rule of the command line that no point of this run could match is refused; with --from the run is over, and what
    it has is seen later.
    """
    command_line_floors = tuple(parse_floor(text) for text in option_values.get("min_busbw") or ())
    if len(command_line_floors) > MOST_FLOORS:
        raise UsageError(
            f"--min-busbw: {len(command_line_floors)} rules, more than the {MOST_FLOORS} that are accepted"
        )
    if not option_values.get("from_"):
        for text, floor in zip(option_values.get("min_busbw") or (), command_line_floors, strict=True):
            _refuse_unmatched(text, floor, request)
    file = option_values.get("baseline")
    return BenchDemands(
        floors=tuple(dict.fromkeys((*command_line_floors, *floors))),
        baseline=load_baseline(file) if file else None,
        tolerance=tolerance_of(option_values.get("tolerance")),
    )


def _refuse_unmatched(text: str, floor: Floor, request: BenchRequest) -> None:
    if floor.dimension:
        _refuse_unmatched_dimension(text, floor, request)
        return
    if floor.op is not None and floor.op not in request.ops:
        raise UsageError(
            f"--min-busbw {text!r}: {floor.op} is not measured: add it to --ops ({','.join(request.ops)})"
        )
    _refuse_unmatched_size(text, floor, request)


def _refuse_unmatched_dimension(text: str, floor: Floor, request: BenchRequest) -> None:
    wish = request.mesh
    known = (
        [] if wish is None else [dimension.name for dimension in (*wish.mesh.dimensions, *wish.mesh.overlaid)]
    )
    if wish is None or floor.dimension not in known:
        raise UsageError(
            f"--min-busbw {text!r}: {floor.dimension} is no dimension of --mesh"
            + (f" ({', '.join(known)})" if known else ": add --mesh")
        )
    if wish.dimensions and floor.dimension not in wish.dimensions:
        raise UsageError(f"--min-busbw {text!r}: {floor.dimension} is not measured: add it to --dims")
    if wish.model is not None:
        return  # it says what is measured
    ops = ops_of(floor.dimension, request, wish)
    if floor.op is not None and floor.op not in ops:
        raise UsageError(
            f"--min-busbw {text!r}: {floor.op} is not measured in {floor.dimension}: add it to --ops ({','.join(ops)})"
        )
    _refuse_unmatched_size(text, floor, request)


def _refuse_unmatched_size(text: str, floor: Floor, request: BenchRequest) -> None:
    if floor.size_bytes is not None and floor.size_bytes not in request.sizes_bytes:
        size = format_size(floor.size_bytes)
        sizes = ",".join(format_size(size) for size in request.sizes_bytes)
        raise UsageError(f"--min-busbw {text!r}: {size} is not measured: add it to --sizes ({sizes})")


def tolerance_of(text: str | None) -> float:
    """Return the share that a percentage allows to be lost; None gives the default. Raises UsageError."""
    if text is None:
        return TOLERANCE
    match = _PERCENT.fullmatch(text.strip())
    if match is None or not float(match[1]) <= _MOST_PERCENT:
        raise UsageError(f"--tolerance {text!r}: expected a percentage from 0 to {_MOST_PERCENT:.0f}, like 5")
    return float(match[1]) / 100


def load_baseline(file: str) -> Baseline:
    """Return the benchmark in a report or a saved run. Raises UsageError where it has none."""
    document = load(file, "--baseline")
    if isinstance(document, Report):
        bench: BenchReport | BenchResult | None = document.bench
    elif isinstance(document, Saved):
        bench = None if isinstance(document.snapshot.bench, Missing) else document.snapshot.bench
    else:
        raise UsageError(f"--baseline {file}: these are the facts of a node, without a benchmark")
    if bench is None or not bench.points:
        raise UsageError(
            f"--baseline {file}: there is no benchmark in it: give a report (.json) or a --save file of a 'bench'"
        )
    known: tuple[Backend, ...] = get_args(Backend)
    backend = next((backend_name for backend_name in known if backend_name == bench.backend), None)
    if backend is None:
        raise UsageError(f"--baseline {file}: unknown backend {bench.backend!r}")
    if any(point.wrong for point in bench.points):
        raise UsageError(f"--baseline {file}: its benchmark gave wrong data, so its times say nothing")
    return Baseline(
        file=file,
        created=document.created,
        backend=backend,
        world_size=bench.world_size,
        nodes=bench.nodes,
        transport=bench.transport,
        points=tuple(baseline_point(point) for point in bench.points),
    )
