"""Each supported version of torch on two nodes: run, the prefix, bench, and under torchrun.

`scripts/test --torch VERSION...` brings the versions, each in a folder of its own with stubs of NVIDIA's libraries, and
`scripts/weekly` runs them all. What is asked is torch's CPU side: the store, gloo, torchrun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lab.launched import Told, read, run
from tests.lab.launchers import with_torchrun
from tests.lab.nodes import REPOSITORY, Lab
from tests.lab.test_prefix import STATIC, prefixed, program, started

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.other_torch]
LabOf = Callable[..., Lab]

NONE_GIVEN = "no versions of torch were given (scripts/test --torch VERSION...)"
FOLDERS = [Path(word) for word in os.environ.get("NCCLCHECK_TEST_TORCH", "").split(":") if word]
SKIPPED: Any = pytest.param(None, marks=pytest.mark.skip(reason=NONE_GIVEN))
GIVEN: list[Any] = [*FOLDERS] or [SKIPPED]
SMALL = ("--backend", "gloo", "--ops", "all_reduce,all_gather", "--sizes", "64K,1M", "--iters", "5")
MASTER = ("master-refused", "master-filtered", "master-no-route", "master-foreign", "master-port-in-use")


def name_of(folder: Path | None) -> str:
    """The version in a test's name."""
    return "none" if folder is None else folder.name.removeprefix("torch-")


@pytest.fixture(params=GIVEN, ids=name_of)
def torch(request: pytest.FixtureRequest) -> Path:
    """The folder with one version of torch."""
    folder: Path = request.param
    return folder


def environment(torch: Path) -> Mapping[str, str]:
    """The variables with which a node has this version of torch, and no other."""
    return {
        "PYTHONPATH": f"{torch}:{REPOSITORY}",
        "LD_LIBRARY_PATH": str(torch / "stubs"),
        "GLOO_SOCKET_IFNAME": "eth0",
    }


def healthy(outcomes: Mapping[str, Told], torch: Path) -> dict[str, Any]:
    """The report of node 0: both nodes pass with this very torch, and nobody finds fault with the network."""
    for outcome in outcomes.values():
        assert outcome.code == 0, str(outcome.finished)
        assert outcome.slugs == set(), str(outcome.finished)
        assert {outcome.outcome(slug) for slug in MASTER} == {"passed"}
    report = outcomes["node1"].report
    assert report is not None
    assert [node["facts"]["software"]["torch"].partition("+")[0] for node in report["nodes"]] == [
        name_of(torch)
    ] * 2
    return report


def measured(report: dict[str, Any]) -> None:
    """Every point of the benchmark has a figure, and its data were right."""
    points = report["bench"]["points"]
    assert [(point["op"], point["wrong"]) for point in points] == [
        (op, 0) for op in ("all_reduce", "all_gather") for _ in range(2)
    ]
    assert all(point["busbw_gb_s"] > 0 for point in points)
    assert report["bench"]["failures"] == []


def test_run_on_two_nodes(lab: LabOf, torch: Path) -> None:
    two = lab(2)
    report = healthy(run(two, "run", *SMALL, env=environment(torch), fresh=True), torch)
    measured(report)
    assert two.leftovers() == ()


def test_bench_on_two_nodes(lab: LabOf, torch: Path) -> None:
    two = lab(2)
    measured(healthy(run(two, "bench", *SMALL, env=environment(torch), fresh=True), torch))
    assert two.leftovers() == ()


def test_the_prefix_trains_with_this_torch(lab: LabOf, torch: Path) -> None:
    two = lab(2)
    program(two)
    command = [*STATIC, "code/train.py", "--steps", "30"]
    outcomes = prefixed(two, command, env=environment(torch))
    healthy(outcomes, torch)
    assert "trained on 2 ranks: loss 0.6" in outcomes["node1"].finished.stdout
    assert started(two) == ["node1", "node2"]


def test_run_under_torchrun(lab: LabOf, torch: Path) -> None:
    two = lab(2)
    argv = ["-m", "ncclcheck", "run", *SMALL, "--output", "report.json"]
    ended = with_torchrun(two, argv, environment(torch))
    assert [finished.returncode for finished in ended.values()] == [0, 0], [
        str(finished) for finished in ended.values()
    ]
    report = healthy({name: read(two[name], finished) for name, finished in ended.items()}, torch)
    measured(report)
