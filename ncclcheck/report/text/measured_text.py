"""What was measured between the nodes, for people: one line per network."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.measure.links.network_rates import (
    Places,
    measured_gbit_s,
    measured_networks,
    measured_round_trip,
)
from ncclcheck.model.fact import Missing
from ncclcheck.model.report import Report
from ncclcheck.report.text.page import Line, Span, line


def measured_lines(report: Report) -> Iterator[Line]:
    """Bandwidth and round trip of each network in the order of measurement; nothing where none was measured."""
    hosts = [node.host for node in report.nodes if node.status == "reported"]
    networks = measured_networks(report.probes, hosts) if hosts else ()
    if not networks:
        return
    yield line(Span("Measured between the nodes", "bold"), ", TCP payload per direction")
    for places in networks:
        names = "/".join(dict.fromkeys(interface for interface, _ in places.values()))
        yield line(
            Span(names, "bold"), f" {_bandwidth(report, places)}, {_latency(report, places)}", indent=2
        )


def _bandwidth(report: Report, places: Places) -> str:
    found = measured_gbit_s(report.probes, places)
    if isinstance(found, Missing):
        return f"bandwidth not known ({found.detail})"
    least = "at least " if found.cpu_limited else ""
    why = ", limited by the CPU" if found.cpu_limited else ""
    spread = f"{found.low:.3g} to {found.high:.3g} in {found.transfers} transfers{why}"
    return f"{least}{found.median:.3g} Gbit/s ({spread})"


def _latency(report: Report, places: Places) -> str:
    found = measured_round_trip(report.probes, places)
    if isinstance(found, Missing):
        return f"round trip not known ({found.detail})"
    return f"round trip {found.median_us:.0f} us ({found.least_us:.0f} to {found.most_us:.0f} over {found.pairs} pairs)"
