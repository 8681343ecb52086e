"""ncclcheck called from the job itself, on real nodes and over the port that the job needs next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import faults
from tests.lab.launched import PORT
from tests.lab.nodes import PYTHON, Lab
from tests.test_api import IN_A_JOB

PAIRS = """
import json, sys
import ncclcheck

pairs = ncclcheck.isolate(select="node-slow", seed=1)
leaves = ncclcheck.matrix(select="link-outlier")
words = {
    "codes": [pairs.verdict.exit_code, leaves.verdict.exit_code],
    "pairs": pairs.isolation and pairs.isolation.coverage.pairs_tested,
    "named": pairs.isolation and len(pairs.isolation.nodes),
    "cells": leaves.matrix and len(leaves.matrix.cells),
}
with open(sys.argv[1], "w") as file:
    json.dump(words, file)
"""

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.mark.further
def test_twice_on_two_nodes_and_then_the_job_meets_on_the_same_port(
    lab: Callable[..., Lab], tmp_path: Path
) -> None:
    two = lab(2)
    script = tmp_path / "job.py"
    script.write_text(IN_A_JOB)
    job = {"WORLD_SIZE": "2", "MASTER_ADDR": two["node1"].address, "MASTER_PORT": str(PORT)}
    ended = two.run_all(
        {node: [PYTHON, str(script), str(tmp_path / "told-by-rank-")] for node in two.nodes},
        {**job, "GLOO_SOCKET_IFNAME": "eth0"},
        env_by_node={node: {"RANK": str(node.rank)} for node in two.nodes},
        timeout_s=120,
    )
    assert [finished.returncode for finished in ended.values()] == [0, 0], [
        str(finished) for finished in ended.values()
    ]
    told = [json.loads((tmp_path / f"told-by-rank-{node.rank}").read_text()) for node in two.nodes]
    assert told == [{"codes": [0, 0], "nodes": 2, "sum": 2.0}] * 2
    assert two.leftovers() == ()


@pytest.mark.further
@pytest.mark.alone
def test_pairs_and_leaves_of_three_nodes_one_call_after_the_other(
    lab: Callable[..., Lab], tmp_path: Path
) -> None:
    three = lab(3)
    for node in three.nodes:
        faults.shape(node, "100mbit")
    job = {"WORLD_SIZE": "3", "MASTER_ADDR": three["node1"].address, "MASTER_PORT": str(PORT)}
    ended = three.run_all(
        {node: [PYTHON, "-c", PAIRS, str(tmp_path / node.name)] for node in three.nodes},
        job,
        env_by_node={node: {"RANK": str(node.rank)} for node in three.nodes},
        timeout_s=180,
    )
    assert [str(finished) for finished in ended.values() if finished.returncode] == []
    told = [json.loads((tmp_path / node.name).read_text()) for node in three.nodes]
    assert [words["codes"] for words in told] == [[0, 3]] * 3, told  # it takes four nodes to tell leaves
    assert (told[0]["pairs"], told[0]["named"]) == (3, 0)
    assert told[0]["cells"] > 0
    assert three.leftovers() == ()
