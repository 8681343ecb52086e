"""ncclcheck called from the job itself, on real nodes and over the port that the job needs next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.launched import PORT
from tests.lab.nodes import PYTHON, Lab
from tests.test_api import IN_A_JOB

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
