"""The benchmark for the report: what was measured, over what, against which ceiling, and what it was judged by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from ncclcheck.checks.bench._ceilings import binding_backends, ceilings
from ncclcheck.checks.bench._hardware import hardware_of
from ncclcheck.logs.used import of_processes
from ncclcheck.measure.blame import slow_ranks
from ncclcheck.measure.reference import fitting
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.ceiling import Ceiling, Comparable
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import BenchReport, Used
from ncclcheck.model.snapshot import Snapshot

_GOOD_GRADES = ("A", "B")
_MOST_REFERENCES = 12


def bench_report(snapshot: Snapshot, bench: BenchResult) -> BenchReport:
    """Return the benchmark without the raw samples, which only a saved run holds."""
    found = ceilings(snapshot, bench)
    references = _references(snapshot, bench)
    remarks = [found.why] if found.why and bench.points else []
    remarks += binding_backends(bench, found.ceilings).values()
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
    )


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
    """One sentence: the scale that decided, and those that came after it or were not there.

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
            "nothing to judge these figures by: no rank is late, no --baseline and no --min-busbw was given, and what "
            "the links allow is not known"
        )
