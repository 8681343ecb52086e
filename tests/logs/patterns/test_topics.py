"""Topics of lines; and no expression that a hostile line can make slow."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck.logs.patterns.topics import TOPICS, topics

HOSTILE = [
    "a" * 4096,
    "connect " * 500,
    "rank 1 " * 500,
    "(" * 4096,
    "error: " * 600,
    "libnccl " * 500,
    "not found " * 400,
]


def test_a_line_has_each_topic_once_with_what_it_names() -> None:
    found = dict(topics("NET/IB : Got completion from peer 10.0.0.1<5> with status=12 opcode=0"))
    assert found["ib-completion"] == {"address": "10.0.0.1<5>", "status": "12"}


@given(st.text(max_size=200))
def test_any_text_has_known_topics(text: str) -> None:
    assert {topic for topic, _ in topics(text)} <= TOPICS


@pytest.mark.parametrize("text", HOSTILE)
def test_no_line_takes_long(text: str) -> None:
    started = time.process_time()
    list(topics(text[:4096]))
    assert time.process_time() - started < 1.0


def test_loading_the_checks_compiles_no_pattern() -> None:
    script = (
        "import sys\nfrom ncclcheck.checks.registry import all_checks\nall_checks('log')\n"
        "sys.exit('ncclcheck.logs.patterns.topics' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
