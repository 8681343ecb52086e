"""NC501 version-differs."""

from __future__ import annotations

import pytest

from ncclcheck.model.fact import Missing
from tests.builders import cluster, everywhere, with_software, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import software


def test_one_image_is_silent() -> None:
    assert is_silent("version-differs", cluster(4))


@pytest.mark.parametrize(
    ("changes", "severity", "words"),
    [
        ({"torch": "2.8.0"}, "error", "torch differs: 2.8.0 on node03, 2.9.0 on node01, node02 and node04"),
        ({"torch": "2.9.1"}, "warning", "torch differs"),
        ({"torch_cuda": "12.6"}, "warning", "CUDA of torch differs"),
        ({"driver": "535.104.05"}, "warning", "NVIDIA driver differs"),
        ({"python": "3.12.1"}, "warning", "Python differs: 3.12 on node03"),
        ({"ncclcheck": "0.0.9"}, "warning", "ncclcheck differs"),
        ({"kernel": "5.15.0"}, "info", "kernel differs"),
        ({"os": "Debian GNU/Linux 12"}, "info", "operating system differs"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_odd_node_is_named(changes: dict[str, str], severity: str, words: str) -> None:
    found = finding("version-differs", with_software(cluster(4), "node03", **changes))
    assert (found.severity, found.hosts) == (severity, ("node03",))
    assert words in found.summary


def test_the_patch_of_python_may_differ() -> None:
    assert is_silent("version-differs", with_software(cluster(4), "node03", python="3.11.2"))


def test_a_tie_names_all() -> None:
    found = finding("version-differs", with_software(cluster(2), "node02", torch="2.8.0"))
    assert found.hosts == ("node01", "node02")
    assert "no majority" in found.summary


def test_torch_that_is_on_three_nodes_only_is_an_error() -> None:
    found = finding(
        "version-differs", with_software(cluster(4), "node03", torch=Missing("absent", "not installed"))
    )
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "none on node03" in found.summary


def test_no_driver_anywhere_is_the_same_everywhere() -> None:
    absent = Missing("absent", "no driver")
    assert is_silent(
        "version-differs", everywhere(cluster(4), software=software(driver=absent, torch_cuda=absent))
    )


def test_what_could_not_be_read_is_unknown() -> None:
    assert run("version-differs", without(cluster(4), "node03", "software")).outcome == "unknown"
    result = run("version-differs", with_software(cluster(4), "node03", driver=Missing("denied", "no right")))
    assert (result.outcome, result.reason) == ("unknown", "node03: NVIDIA driver: denied: no right")
    nowhere = everywhere(cluster(4), software=software(torch=Missing("absent", "not installed")))
    assert run("version-differs", nowhere).outcome == "unknown"
