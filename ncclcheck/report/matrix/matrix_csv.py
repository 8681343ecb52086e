"""The cells of `matrix` as a table for spreadsheets and scripts."""

from __future__ import annotations

import csv
from io import StringIO

from ncclcheck.model.report import Report
from ncclcheck.report.text.plain import plain

HEADER = ("from", "to", "kind", "value", "unit", "tests")
_FORMULA = ("=", "+", "-", "@")  # a spreadsheet would compute what begins so


def to_csv(report: Report) -> str:
    """Return a row per measured path; only the header where there is no matrix. An empty value: it did not finish."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for cell in report.matrix.cells if report.matrix is not None else ():
        value = "" if cell.rate_gbit_s is None else f"{cell.rate_gbit_s:g}"
        writer.writerow((_name(cell.from_host), _name(cell.to_host), "rate", value, "Gbit/s", cell.tests))
    return out.getvalue()


def _name(host: str) -> str:
    shown = plain(host)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
