"""What the charts of the HTML page show, as lists for its script: names once, numbers rounded, the worst of many."""

from __future__ import annotations

import math
from typing import Any

from ncclcheck.model.bench import Comparison, Point
from ncclcheck.model.report import BenchReport, Report
from ncclcheck.model.snapshot import Probe
from ncclcheck.model.units import format_size
from ncclcheck.report.text.plain import plain

MOST_RANKS = 96  # of a point in the chart of late ranks: the latest ones
MOST_PAIRS = 500  # of failed pairs in the table beside the heat map
# From the harmless to the bad: of several attempts between two nodes the worst is shown.
OUTCOMES = ("ok", "self", "wrong-peer", "stalled", "answer-lost", "refused", "no-route", "filtered", "error")
_OF_VALUES = ("latency", "bandwidth")


def chart_data(report: Report) -> dict[str, Any]:
    """All that the script draws, JSON-ready; a key is absent where there is nothing to draw."""
    data: dict[str, Any] = {}
    reach = reach_matrix(report)
    if reach["kinds"]:
        data["reach"] = reach
    if report.bench is not None and report.bench.points:
        data["bench"] = bench_curves(report.bench)
    if report.comparison is not None:
        data["comparison"] = comparison_rounds(report.comparison)
    return data


def reach_matrix(report: Report) -> dict[str, Any]:
    """Hosts once, and of each kind of probe `[from, to, value, words]` with indexes into the hosts.

    The value of a tcp or mtu pair is the index of its worst outcome in `outcomes`; of latency and bandwidth the worst
    value that was measured: the longest, the lowest.
    """
    hosts = [node.host for node in report.nodes]
    number = {host: at for at, host in enumerate(dict.fromkeys(hosts))}
    kinds: dict[str, dict[tuple[int, int], tuple[float, str]]] = {}
    units: dict[str, str] = {}
    for probe in report.probes:
        if probe.kind == "clock":
            continue
        pair = tuple(number.setdefault(host, len(number)) for host in (probe.from_host, probe.to_host))
        value = _value(probe)
        if value is None:
            continue
        units.setdefault(probe.kind, probe.unit)
        shown = kinds.setdefault(probe.kind, {})
        before = shown.get((pair[0], pair[1]))
        if before is None or _is_worse(probe, value, before[0]):
            shown[pair[0], pair[1]] = (value, plain(f"{probe.interface} {probe.address}".strip()))
    return {
        "hosts": [plain(host) for host in number],
        "outcomes": list(OUTCOMES),
        "units": units,
        "kinds": {
            kind: [[*pair, value, words] for pair, (value, words) in shown.items()]
            for kind, shown in kinds.items()
        },
    }


def _value(probe: Probe) -> float | None:
    if probe.kind in _OF_VALUES:
        known = probe.outcome == "ok" and probe.value is not None and math.isfinite(probe.value)
        return float(f"{probe.value:.4g}") if known else None
    return OUTCOMES.index(probe.outcome)


def _is_worse(probe: Probe, value: float, before: float) -> bool:
    return value < before if probe.kind == "bandwidth" else value > before


def failed_pairs(report: Report) -> list[Probe]:
    """Return the probes that did not reach their peer, worst first."""
    failed = [probe for probe in report.probes if probe.outcome not in ("ok", "self")]
    return sorted(failed, key=lambda probe: (-OUTCOMES.index(probe.outcome), probe.from_host, probe.to_host))


def bench_curves(bench: BenchReport) -> dict[str, Any]:
    """Return the points by op: sizes, bandwidths, times, the ranks that kept the rest waiting, and the ceilings."""
    return {
        "points": [_point(point) for point in bench.points],
        "ceilings": [
            {
                "op": ceiling.op,
                "busbw": _number(ceiling.busbw_gb_s),
                "limit": _number(ceiling.limit_gb_s) if ceiling.limit_gb_s is not None else None,
                "binds": plain(ceiling.binds),
                "source": ceiling.source,
            }
            for ceiling in bench.ceilings
        ],
    }


def _point(point: Point) -> dict[str, Any]:
    latest = sorted(point.ranks, key=lambda rank: -rank.late_us)[:MOST_RANKS]
    return {
        "op": plain(point.op),
        "size": point.size_bytes,
        "label": format_size(point.size_bytes) if point.size_bytes > 0 else str(point.size_bytes),
        "busbw": _number(point.busbw_gb_s),
        "algbw": _number(point.algbw_gb_s),
        "mean": _number(point.time_us.mean),
        "min": _number(point.time_us.min),
        "p50": _number(point.time_us.p50),
        "p95": _number(point.time_us.p95),
        "unstable": plain(point.unstable or ""),
        "ranks": [
            [time.rank, plain(time.host), _number(time.late_us), _number(time.stalled_us)]
            for time in sorted(latest, key=lambda late: late.rank)
        ],
        "of_ranks": len(point.ranks),
    }


def comparison_rounds(comparison: Comparison) -> dict[str, Any]:
    """Return the mean time of each round under both environments, in microseconds."""
    return {
        "as_is": [_number(us) for us in comparison.as_is.times_us],
        "advised": [_number(us) for us in comparison.advised.times_us],
    }


def _number(value: float) -> float | None:
    """Five digits that count; null for what is no number, which JSON has no word for."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
