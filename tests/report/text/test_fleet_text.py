"""The table of a fleet: a line for each check that did not pass everywhere, with the nodes folded."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.report import Fleet, FleetCheck
from ncclcheck.report.text.fleet_text import fleet_lines, fleet_rows
from ncclcheck.report.text.page import draw_plain
from tests.report.reports import report

FINE = FleetCheck("NC701", "shm-small", 4, 0, 0, 0, 0, (), ())
FOUND = FleetCheck("NC404", "gpu-ecc", 2, 1, 1, 0, 0, ("node02",), ("node04",))
WIDE = FleetCheck("NC501", "version-differs", 0, 12, 0, 0, 0, tuple(f"node{i:02}" for i in range(1, 13)), ())
FLEET = Fleet(4, "2026-11-22T11:00:00+00:00", "2026-11-22T12:00:00+00:00", (FINE, FOUND, WIDE))


def test_only_checks_that_did_not_pass_everywhere_have_a_line() -> None:
    text = draw_plain(fleet_lines(replace(report(), fleet=FLEET)))
    assert text.splitlines() == [
        "fleet: 4 reports, 2026-11-22T11:00:00+00:00 to 2026-11-22T12:00:00+00:00",
        "  check            passed  found  unknown  nodes",
        "  gpu-ecc               2      1        1  found on node02; unknown on node04",
        "  version-differs       0     12        0  found on node[01-12]",
    ]


def test_a_fleet_that_is_fit_has_no_table_and_another_report_none_at_all() -> None:
    fine = replace(FLEET, checks=(FINE,), oldest=FLEET.newest)
    assert fleet_rows(fine) == []
    text = draw_plain(fleet_lines(replace(report(), fleet=fine)))
    assert text == "fleet: 4 reports, 2026-11-22T12:00:00+00:00\n"
    assert list(fleet_lines(report())) == []
