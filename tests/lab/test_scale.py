"""What node 0 does for each node does not grow with the nodes: 256 of them, simulated, and the real node 0."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
NODES = 256
# Measured per node: 55 requests, 7 kB sent, 8 kB received; without waiting and orders of their own 570, 91 kB, 113 kB.
# A wait is asked again after some seconds, so a busy machine adds requests: two for each wait of which one ended late.
MOST_REQUESTS = 110
MOST_SENT_BYTES = 14_000
MOST_RECEIVED_BYTES = 16_000
MOST_MIB = 800


@pytest.mark.lab
@pytest.mark.slow
def test_256_nodes_cost_node_0_few_requests_and_bytes_each(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(REPOSITORY / "scripts/scale"), str(NODES), "--json", str(figures)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_bytes())
    agents = found["agents"]
    assert agents["exit_codes"] == {"0": NODES - 1}, done.stdout
    assert sum(agents["requests"].values()) / NODES < MOST_REQUESTS, agents["requests"]
    assert agents["sent_bytes"] / NODES < MOST_SENT_BYTES
    assert agents["received_bytes"] / NODES < MOST_RECEIVED_BYTES
    assert found["first"]["peak_mib"] < MOST_MIB
