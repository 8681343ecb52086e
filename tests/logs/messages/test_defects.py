"""The table of known defects: versions, symptoms, and what explain makes of them."""

from __future__ import annotations

import re

import pytest

from ncclcheck.logs.messages.defects import Defect, defects, numbers, of_versions
from tests.logs.rounds import explain

ROCE = "n1:1:2 [0] transport/net_ib.cc:1 NCCL WARN NET/IB: read failed in ncclIbRoceGetVersionNum: Invalid argument\n"


@pytest.mark.parametrize("defect", defects(), ids=lambda defect: defect.id)
def test_a_defect_says_which_versions_have_it(defect: Defect) -> None:
    assert numbers(defect.first) <= numbers(defect.last)
    assert not defect.fixed or numbers(defect.fixed) > numbers(defect.last)
    assert defect.workaround
    assert defect.thread
    re.compile(defect.symptom)


def test_only_the_versions_in_between_have_it() -> None:
    names = {"2.20.5": False, "2.21.5+cuda12.4": True, "2.25.1": True, "2.26.2": False, "": False, "x": False}
    for version, has in names.items():
        assert ("roce-version" in {defect.id for defect, _ in of_versions([version], [])}) is has, version


@pytest.mark.parametrize(("version", "cause"), [("2.22.3", True), ("2.27.3", False)])
def test_the_defect_is_named_where_the_log_shows_such_a_version(version: str, cause: bool) -> None:
    found = explain("job.log", f"NCCL version {version}+cuda12.4\n{ROCE}".encode())
    first = found.findings[0]
    assert ("known defect" in first.summary and "2.26.2" in first.summary) is cause


def test_ids_are_unique() -> None:
    assert len({defect.id for defect in defects()}) == len(defects())
