"""soak on real nodes: what comes and goes is named with its node and its time, and a kill costs one block."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab import faults
from tests.lab.launched import Told, start, told
from tests.lab.nodes import PYTHON, Lab
from tests.lab.soak_faults import blocks_in, stopped_workers
from tests.lab.topologies import limit

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.alone]
LabOf = Callable[..., Lab]
WAIT_S = 120


def series_of(outcome: Told) -> dict[str, Any]:
    assert outcome.report is not None, str(outcome.finished)
    assert outcome.report["soak"] is not None, str(outcome.finished)
    found: dict[str, Any] = outcome.report["soak"]
    return found


def events(outcome: Told, kind: str) -> list[dict[str, Any]]:
    return [event for event in series_of(outcome)["events"] if event["kind"] == kind]


def words(lab: Lab, duration: str, every: str, size: str) -> list[str]:
    folder = lab.nodes[0].folder / "home" / "soak"
    return [
        "--state",
        str(folder),
        "--no-preflight",
        "--duration",
        duration,
        "--every",
        every,
        "--size",
        size,
    ]


@pytest.mark.further
def test_a_link_that_flaps_is_named_and_the_folder_is_reported_meanwhile(lab: LabOf) -> None:
    three = lab(3)
    bad, folder = three.nodes[1], three.nodes[0].folder / "home" / "soak"
    running = start(three, "soak", *words(three, "20s", "0.5s", "64K"))
    blocks_in(folder, 6, WAIT_S)
    faults.unplug(bad)
    time.sleep(0.3)
    three.switch.ip(f"link set eth0-{bad.number} up")
    meanwhile = three.nodes[0].run([PYTHON, "-m", "ncclcheck", "report", str(folder), "--format", "json"])
    assert json.loads(meanwhile.stdout)["soak"]["blocks"] >= 6, str(meanwhile)
    outcomes = told(three, running)
    (flap,) = events(outcomes["node1"], "flap")
    assert flap["hosts"] == ["node2"], str(outcomes["node1"].finished)
    assert outcomes["node1"].finding("link-flap")["hosts"] == ["node2"]
    assert {outcome.code for outcome in outcomes.values()} == {4}
    assert three.leftovers() == ()


@pytest.mark.further
def test_a_kill_loses_one_block_and_the_series_is_resumed(lab: LabOf) -> None:
    two = lab(2)
    folder = two.nodes[0].folder / "home" / "soak"
    running = start(two, "soak", *words(two, "60s", "0.5s", "64K"))
    blocks_in(folder, 12, WAIT_S)
    written = (folder / "blocks.jsonl").read_bytes().count(b"\n")
    os.kill(running["node1"].pid, signal.SIGKILL)
    told(two, running)
    assert (folder / "blocks.jsonl").read_bytes().count(b"\n") >= written
    again = ["--resume", str(folder), "--no-preflight", "--duration", "10s"]
    outcomes = told(two, start(two, "soak", *again))
    series = series_of(outcomes["node1"])
    assert series["blocks"] > written
    assert len(series["gaps"]) == 1
    assert series["unreadable"] == 0
    assert outcomes["node1"].code in (3, 4), str(outcomes["node1"].finished)  # the gap is more than a tenth
    numbers = [
        line["number"]
        for line in map(json.loads, (folder / "blocks.jsonl").read_text().splitlines())
        if line["type"] == "block"
    ]
    assert numbers == list(range(len(numbers)))


@pytest.mark.further
def test_a_node_that_stands_still_is_named_as_the_one_that_all_waited_for(lab: LabOf) -> None:
    three = lab(3)
    folder = three.nodes[0].folder / "home" / "soak"
    running = start(three, "soak", *words(three, "30s", "1s", "64K"))
    blocks_in(folder, 12, WAIT_S)
    for blocks in (14, 16, 18):
        stopped_workers(three.nodes[2], 0.3)
        blocks_in(folder, blocks, WAIT_S)
    outcomes = told(three, running)
    hosts = [event["hosts"] for event in events(outcomes["node1"], "tail")]
    assert ["node3"] in hosts, str(outcomes["node1"].finished)


@pytest.mark.further
def test_a_node_that_sends_less_for_a_while_is_named_with_direction_begin_and_end(lab: LabOf) -> None:
    three = lab(3)
    for node in three.nodes:
        faults.shape(node, "100mbit")
    bad, folder = three.nodes[1], three.nodes[0].folder / "home" / "soak"
    running = start(three, "soak", *words(three, "80s", "2s", "512K"))
    blocks_in(folder, 14, WAIT_S)
    limit(bad.namespace, "eth0", "75mbit")
    time.sleep(24)  # so long the fault lasts
    limit(bad.namespace, "eth0", "100mbit")
    outcomes = told(three, running)
    drop = next(iter(events(outcomes["node1"], "drop")), None)
    assert drop is not None, str(outcomes["node1"].finished)
    assert (drop["hosts"], drop["direction"]) == (["node2"], "send"), drop
    assert drop["to_s"] is not None
    assert drop["named_s"] - drop["from_s"] <= 60
    assert outcomes["node1"].code == 4
