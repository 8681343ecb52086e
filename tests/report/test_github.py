"""Workflow commands of GitHub Actions."""

from __future__ import annotations

from ncclcheck.report.github import escape_data, escape_property, to_github
from tests.report.reports import check_run, finding, found, report


def test_the_verdict_comes_first_and_every_finding_is_an_annotation() -> None:
    made = report(
        [
            found(finding("mtu-differs", "node02")),
            found(finding("shm-small", "node03", severity="warning", code="NC701")),
            found(finding("env-harmful", severity="info", code="NC603")),
            check_run("gpu-count", "unknown", "no NVML", code="NC401"),
        ]
    )
    lines = to_github(made).splitlines()
    assert [line.split(" ")[0] for line in lines[:5]] == [
        "::error",
        "::error",
        "::warning",
        "::notice",
        "::warning",
    ]
    assert lines[0].startswith("::error title=ncclcheck preflight%3A fail%2C exit code 1::1 error: ")
    assert lines[1].startswith("::error title=NC213 mtu-differs::error  NC213 mtu-differs  on node02%0A  ")
    assert lines[4].endswith("::unknown  NC401 gpu-count: no NVML")


def test_a_pass_is_a_notice() -> None:
    first, *others = to_github(report()).splitlines()
    assert first == "::notice title=ncclcheck preflight%3A pass%2C exit code 0::no errors: 1 check passed"
    assert {one.split(" title=")[0] for one in others} == {"::notice"}
    assert others[0].startswith("::notice title=ncclcheck preflight%3A what NCCL chooses::")


def test_a_host_name_cannot_start_a_command() -> None:
    made = report([found(finding("mtu-differs", "a\n::add-mask::x", summary="b\r\n##[error]y 100%"))])
    lines = to_github(made).splitlines()
    assert all(line.startswith(("::error title=", "::notice title=")) for line in lines)
    assert "100%25" in lines[1]


def test_escapes_are_those_of_the_toolkit() -> None:
    assert escape_data("50% a\r\nb: c, d") == "50%25 a%0D%0Ab: c, d"
    assert escape_property("50% a\nb: c, d") == "50%25 a%0Ab%3A c%2C d"
