"""The cells of `matrix` as a table for spreadsheets and scripts."""

from __future__ import annotations

import csv
from io import StringIO

from ncclcheck.model.report import Report
from ncclcheck.report.text.plain import plain

HEADER = ("from", "to", "kind", "value", "unit", "tests")
_FORMULA = ("=", "+", "-", "@")  # a spreadsheet would compute what begins so


def to_csv(report: Report) -> str:
    """Return the rate and the round trip of each measured path; only the header where there is no matrix.

    An empty value: it did not finish.
    """
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for cell in report.matrix.cells if report.matrix is not None else ():
        value = "" if cell.gbit_s is None else f"{cell.gbit_s:g}"
        ends = (_name(cell.from_host), _name(cell.to_host))
        writer.writerow((*ends, "rate", value, "Gbit/s", cell.tests))
        if cell.latency_us is not None:
            writer.writerow((*ends, "round trip", f"{cell.latency_us:g}", "us", cell.tests))
    return out.getvalue()


def _name(host: str) -> str:
    shown = plain(host)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
