"""The cells of matrix as CSV, read back by the csv module."""

from __future__ import annotations

import csv
from io import StringIO

from msgspec.structs import replace

from ncclcheck.model.benchmarks.matrix import MatrixCell
from ncclcheck.report.formats import rendered
from ncclcheck.report.matrix.matrix_csv import HEADER, to_csv
from tests.matrix_builders import fabric, matrix_report
from tests.report.reports import report


def test_a_row_for_each_path() -> None:
    rows = list(csv.reader(StringIO(rendered(matrix_report(fabric()), "csv"))))
    assert tuple(rows[0]) == HEADER
    assert rows[1] == ["node01", "node02", "rate", "10", "Gbit/s", "1"]
    assert len(rows) == 1 + 12


def test_names_are_no_formulas_and_a_cell_that_did_not_finish_is_empty() -> None:
    cells = (MatrixCell('=1+1,"', "b\nc", None, 2),)
    rows = list(csv.reader(StringIO(to_csv(matrix_report(replace(fabric(), cells=cells))))))
    assert len(rows) == 2
    assert rows[1][0].startswith("'=")
    assert rows[1][3:] == ["", "Gbit/s", "2"]


def test_another_report_has_the_header_only() -> None:
    assert to_csv(report()) == ",".join(HEADER) + "\n"
