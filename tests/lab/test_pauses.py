"""Node 0 itself stands still for a while: nobody else is accused of that time, and it says so."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from tests.lab.launched import start, told
from tests.lab.nodes import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]
PREFLIGHT = ("preflight",)
ISOLATE = ("isolate", "--size", "64K", "--max-rounds", "3")


@pytest.mark.parametrize(
    ("words", "when", "seconds"),
    [
        (ISOLATE, "round 1", 12.0),
        pytest.param(PREFLIGHT, "probing the network", 12.0, marks=pytest.mark.further),
    ],
)
def test_a_node_0_that_stood_still_accuses_nobody(
    lab: LabOf, words: tuple[str, ...], when: str, seconds: float
) -> None:
    three = lab(3)
    running = start(three, *words, "--timeout", "60")
    first = running["node1"]
    first.wait_for(when, 50)
    first.signal(signal.SIGSTOP)
    time.sleep(seconds)  # longer than the others wait for its store
    first.signal(signal.SIGCONT)
    node1 = told(three, running, 80)["node1"]
    assert node1.report is not None, str(node1.finished)
    accused = {
        (finding["slug"], host)
        for finding in node1.report["findings"]
        if finding["severity"] != "info"
        for host in finding["hosts"]
    }
    assert accused == {("node-stood-still", "node1")}, str(node1.finished)
    assert node1.code == 3
