"""The plan of a soak, which a resumed one takes from the series that it continues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from ncclcheck.bench.soak.series_folder import has_series, lines_in, start_in
from ncclcheck.model.bench import BenchPlan
from ncclcheck.model.bench_setup import BenchNetwork
from ncclcheck.model.benchmarks.soak import USUAL_DROP, SoakPlan, SoakRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.formats.prose import listed, plural
from ncclcheck.model.units import format_size
from ncclcheck.timeouts import SOAK_BLOCK_S

_SHOWN = 4  # hosts, by name

USUAL_OP, USUAL_BYTES = "all_reduce", 64 << 20


def refuse_folder(request: SoakRequest | None) -> None:
    """Check that the folder can be begun or continued as asked; else raise UsageError, before any node joins."""
    if request is None:
        return
    there = has_series(request.folder)
    if isinstance(there, Missing) and there.missing == "timeout":
        option = "--resume" if request.resumes else "--state"
        raise UsageError(f"{option} {request.folder}: nothing answers there: its mount hangs")
    begun = start_in(request.folder) if request.resumes or there is True else None
    if request.resumes and isinstance(begun, Missing):
        raise UsageError(f"--resume {begun.detail}")
    if isinstance(begun, Missing):
        raise UsageError(f"--state {begun.detail}: name another folder")
    if begun is not None and not request.resumes:
        raise UsageError(f"--state {request.folder}: it holds a series already: --resume continues it")


def soak_plan(request: SoakRequest, plan: BenchPlan, network: BenchNetwork) -> Fact[BenchPlan]:
    """Return the plan of a benchmark with the soak in it; Missing where the folder does not allow it."""
    planned = SoakPlan(
        request.duration_s,  # where --timeout is over before, the watch says so
        request.every_s or SOAK_BLOCK_S,
        request.drop or USUAL_DROP,
        request.duty or 1.0,
        request.until_finding,
    )
    ops, size_bytes = request.ops or (USUAL_OP,), request.size_bytes or USUAL_BYTES
    if not request.resumes:
        if has_series(request.folder) is True:
            return Missing("error", f"{request.folder} holds a series already: --resume continues it")
        return replace(plan, ops=ops, sizes_bytes=(size_bytes,), soak=planned)
    judge = lines_in(request.folder)
    if isinstance(judge, Missing):
        return judge
    start = judge.start
    assert start is not None  # noqa: S101 (lines_in)
    before, now = Counter(start.hosts), +Counter(network.ranks_of)
    if before != now:
        return Missing("error", f"the series in {request.folder} is of {_of(before, now)}")
    is_other = (request.ops and request.ops != start.ops) or request.size_bytes not in (
        None,
        start.size_bytes,
    )
    if is_other or start.backend != network.backend:
        what = f"{', '.join(start.ops)} of {format_size(start.size_bytes)} over {start.backend}"
        asked = f"{', '.join(ops)} of {format_size(size_bytes)} over {network.backend}"
        why = f"the series in {request.folder} is of {what}, and this run asks for {asked}"
        return Missing("error", f"{why}: leave --size and --ops out, or begin a new series")
    earlier = start.plan
    planned = replace(
        planned,
        every_s=request.every_s or earlier.every_s,
        drop=request.drop or earlier.drop,
        duty=request.duty or earlier.duty,
        first=judge.next_number,
    )
    return replace(plan, ops=start.ops, sizes_bytes=(start.size_bytes,), soak=planned)


def _of(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """Return how the ranks of the series and those of this run differ."""
    ranks = f"{plural(sum(before.values()), 'rank')} on {plural(len(before), 'node')}"
    this = f"this run has {sum(now.values())} on {len(now)}"
    gone, new = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    which = [f"{word} {listed(hosts, _SHOWN)}" for word, hosts in (("without", gone), ("with", new)) if hosts]
    return f"{ranks}, and {this}" + (f", {' and '.join(which)}" if which else ", with other ranks per node")
