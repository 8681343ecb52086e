"""The benchmark for the report: what was measured, over what, against which ceiling, and what it was judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ncclcheck.checks.bench._ceilings import binding_backends, ceilings
from ncclcheck.checks.bench._hardware import hardware_of
from ncclcheck.checks.registry import Selection, run_checks
from ncclcheck.logs.used import of_processes
from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.mesh.job_mesh import placement
from ncclcheck.measure.reference import fitting
from ncclcheck.model.bench import BenchResult, GpuSpeed
from ncclcheck.model.benchmarks.ceiling import Ceiling, Comparable
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import BenchReport, Used
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl.distorting import distorting
from ncclcheck.report.mesh_report import mesh_report
from ncclcheck.report.text.fold import fold_hosts

_GOOD_GRADES = ("A", "B")
_MOST_REFERENCES = 12

NAMED_BY_BENCH = (
    "bench-hang",
    "bench-slow-rank",
    "bench-wrong-data",
    "bench-below-floor",
    "bench-below-baseline",
    "group-slow-in-mesh",
    "mesh-wrong-data",
)


def is_named_by_bench(snapshot: Snapshot, selection: Selection) -> bool:
    """Return whether the benchmark found what tests of pairs may explain."""
    runs = run_checks(snapshot, Selection(NAMED_BY_BENCH, selection.ignore))
    return any(run.findings for run in runs)


def bench_report(snapshot: Snapshot, bench: BenchResult) -> BenchReport:
    """Return the benchmark without the raw samples, which only a saved run holds."""
    found = ceilings(snapshot, bench)
    references = _references(snapshot, bench)
    remarks = [found.why] if found.why and bench.points else []
    remarks += binding_backends(bench, found.ceilings).values()
    remarks += _conditions(snapshot, bench) if bench.backend == "nccl" and bench.points else ()
    remarks += _judged_by(snapshot, bench, found.ceilings, references) if bench.points else ()
    return BenchReport(
        backend=bench.backend,
        world_size=bench.world_size,
        nodes=bench.nodes,
        plan=bench.plan,
        transport=bench.transport,
        points=tuple(replace(point, samples_us=UNSET) for point in bench.points),
        links=bench.links,
        failures=bench.failures,
        used=_used(bench),
        ceilings=found.ceilings,
        references=references,
        remarks=tuple(remarks),
        gpus=bench.isolation.gpus,
        mesh=None if bench.mesh is None else mesh_report(bench.mesh, placement(snapshot)),
        trials=bench.trials,
        race=bench.race,
    )


def _alone(gpus: Sequence[GpuSpeed]) -> str:
    """Return the lowest and the highest of each figure: "690 to 702 TFLOP/s (half precision), ..."."""
    figures = (
        ("MHz", [gpu.clock_mhz for gpu in gpus]),
        ("TFLOP/s (half precision)", [gpu.compute_tflop_s for gpu in gpus]),
        ("GB/s within their memory", [gpu.device_gb_s for gpu in gpus]),
        ("GB/s from the host", [gpu.host_gb_s for gpu in gpus]),
    )
    return ", ".join(f"{min(values):.4g} to {max(values):.4g} {unit}" for unit, values in figures)


def _conditions(snapshot: Snapshot, bench: BenchResult) -> Iterator[str]:
    """Yield under which torch and clocks it ran, and what became of settings of the job that distort times."""
    versions = sorted(
        {
            str(node.facts.software.torch)
            for node in snapshot.nodes
            if not isinstance(node.facts.software, Missing)
        }
    )
    if versions:
        yield f"torch {', '.join(versions)}"
    clocks = {rank: rank.clock_mhz for rank in bench.points[-1].ranks if rank.clock_mhz is not None}
    if clocks:
        slowest = min(clocks, key=lambda rank: rank.clock_mhz or 0.0)
        yield (
            f"GPU clocks while measuring: {min(clocks.values()):.0f} to {max(clocks.values()):.0f} MHz "
            f"(slowest: rank {slowest.rank} on {slowest.host})"
        )
    if bench.isolation.gpus:
        yield f"GPUs alone, all at the same time: {_alone(bench.isolation.gpus)}"
    set_on, left_out = dict[str, list[str]](), dict[str, list[str]]()
    for node in snapshot.nodes:
        if isinstance(node.facts.environment, Missing):
            continue
        unset = [name for name, value in bench.environment.get(node.host, {}).items() if value is None]
        for name in distorting(node.facts.environment):
            (left_out if name in unset else set_on).setdefault(name, []).append(node.host)
    for name, hosts in left_out.items():
        yield f"measured without {name}, which the job sets on {fold_hosts(hosts)}: it distorts times"
    for name, hosts in set_on.items():
        yield f"measured with {name}, as the job sets it on {fold_hosts(hosts)}: it distorts times"


def _used(bench: BenchResult) -> tuple[Used, ...]:
    """Combine what the logs of all nodes say was used."""
    processes = [
        process
        for node in bench.logs
        if not isinstance(node.processes, Missing)
        for process in node.processes
    ]
    return tuple(of_processes(processes))


def _references(snapshot: Snapshot, bench: BenchResult) -> tuple[Comparable, ...]:
    hardware = hardware_of(snapshot, bench)
    if hardware is None:
        return ()
    pairs = fitting(hardware, bench.points)[:_MOST_REFERENCES]
    return tuple(Comparable(row, point.size_bytes, point.busbw_gb_s) for row, point in pairs)


def _judged_by(
    snapshot: Snapshot, bench: BenchResult, found: Sequence[Ceiling], references: Sequence[Comparable]
) -> Iterator[str]:
    """One sentence: the scale that decided, and those that followed it or were not available.

    The other ranks first, then the machine's own last good run, then what the links allow, a table last. Floors are the
    user's word, and stand beside all of that.
    """
    demands = snapshot.bench_demands
    scales = []
    slow = slow_ranks(bench.points)
    if slow:
        scales.append(f"the other ranks (rank {slow[0].rank} on {slow[0].host} is late)")
    if demands.baseline is not None:
        when = f" of {demands.baseline.created}" if demands.baseline.created else ""
        scales.append(f"the baseline {demands.baseline.file}{when}")
    if found:
        how = "as measured" if found[0].source == "measured" else "by their speed"
        scales.append(f"what the links allow, {how}")
    good = [reference.reference for reference in references if reference.reference.grade in _GOOD_GRADES]
    if good:
        scales.append(f"the reference table (grade {good[0].grade}, {good[0].source})")
    floors = " and the floors that were demanded" if demands.floors else ""
    if scales:
        after = f"; then {', then '.join(scales[1:])}" if scales[1:] else ""
        yield f"judged by {scales[0]}{floors}{after}"
    elif floors:
        yield f"judged by{floors.removeprefix(' and')}"
    else:
        yield (
            "no verdict on these figures: no rank is late, no --baseline and no --min-busbw was given, and what "
            "the links allow is not known"
        )
