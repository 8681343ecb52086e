"""preflight where a node runs another state of the same version of ncclcheck."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import ncclcheck
from tests.lab.launched import run
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]


def other_state(folder: Path, path: str, old: str, new: str) -> dict[str, str]:
    """A copy of the package in which this text of a module is another one, and the environment that selects it."""
    shutil.copytree(Path(ncclcheck.__file__).parent, folder / "ncclcheck")
    module = folder / "ncclcheck" / path
    text = module.read_text()
    assert old in text
    module.write_text(text.replace(old, new))
    return {"PYTHONPATH": str(folder)}


def test_a_node_that_understands_all_the_same_is_named(lab: LabOf, tmp_path: Path) -> None:
    two = lab(2)
    other = other_state(tmp_path, "timeouts.py", '"""Every', '"""Each and every')
    outcomes = run(two, "preflight", env_by_node={two["node2"]: other}, fresh=True)
    first = outcomes["node1"]
    assert first.code == 0, str(first.finished)
    assert "ncclcheck differs" in first.finding("version-differs")["summary"]
    assert "install the same on every node" in outcomes["node2"].finished.stderr


@pytest.mark.parametrize("number", [2, pytest.param(1, marks=pytest.mark.further)])
def test_where_an_order_is_not_understood_the_other_state_is_the_cause(
    lab: LabOf, tmp_path: Path, number: int
) -> None:
    two = lab(2)
    other = other_state(tmp_path, "run/steps/reach.py", "targets_of", "targets_for")
    outcomes = run(two, "preflight", env_by_node={two[f"node{number}"]: other}, fresh=True)
    first = outcomes["node1"]
    summaries = [finding["summary"] for finding in first.report["findings"]] if first.report else []
    assert any("runs ncclcheck 0" in summary for summary in summaries), str(first.finished)
    assert not any("another program" in summary for summary in summaries)
    assert "install the same on every node" in outcomes["node2"].finished.stderr
