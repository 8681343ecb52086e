"""The first glance passes every line that a pattern matches: its texts are derived from the patterns."""

from __future__ import annotations

import re
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncclcheck.logs.patterns.literals import required
from ncclcheck.logs.patterns.topic_tables import ALL_TOPICS
from ncclcheck.logs.patterns.topics_harmless import HARMLESS_PATTERNS
from ncclcheck.logs.readers import collectives, connections, exceptions, exits
from ncclcheck.logs.readers.glance import PATTERNS, QUIET_STARTS, may_mean_something
from ncclcheck.model.events import Remark
from tests.checks.logs.explaining import read
from tests.further import mostly_further

ALL_PATTERNS = sorted(
    {
        *(words for topic in ALL_TOPICS for words in topic.patterns),
        *HARMLESS_PATTERNS,
        *(pattern for reader in (collectives, connections, exceptions, exits) for pattern in reader.PATTERNS),
    }
)
# They refine what another pattern of the file found, so no line is looked at for their sake.
REFINING = {
    collectives: {"_GROUP"},
    connections: {"_NCCL_AGAIN", "_TRIES_AGAIN"},
    exceptions: {"_LINE", "_LAUNCHER", "_AFTER", "_AFTER_CLASS", "_OF_ANOTHER"},
    exits: {"_CODE"},
}
MEANT = [
    "Duplicate GPU detected : rank 3 and rank 2 both on CUDA device 50",
    "RuntimeError: x",
    "ncclRemoteError: A call failed",
    "#  Rank  0 Group  0 Pid 303554 on cnode2-002 device  0 [0000:1b:00] NVIDIA H100",
    "  host      : n0",
    "  rank      : 1 (local_rank: 1)",
    "exit code 137",
    "srun: error: n1: task 6: Out Of Memory",
    "mlx5_0\t1\t0\tfe80:0000:0000:0000:946d:9aff:fe11:1d5c\t\t\tv1\tens2f0",
    "10.5.0.0/16 dev ens6f1 proto kernel scope link src 10.5.1.4 metric 100",
]
FINISHED = [
    "{'train_runtime': 12.3, 'train_samples_per_second': 81.2, 'train_loss': 0.5, 'epoch': 3.0}",
    "Trainer.fit stopped: max_epochs=3 reached",
    "`Trainer.fit` stopped: `max_epochs=3` reached.",
    "`Trainer.fit` stopped: `max_steps=100` reached.",
]


@pytest.mark.parametrize("pattern", ALL_PATTERNS)
def test_each_text_that_a_pattern_needs_passes(pattern: str) -> None:
    assert pattern in PATTERNS
    texts = required(pattern)
    assert texts
    assert [text for text in texts if not may_mean_something(text.encode())] == []


@pytest.mark.parametrize("pattern", mostly_further(ALL_PATTERNS, len(ALL_PATTERNS) // 8))  # mark.further
def test_each_line_that_a_pattern_matches_passes(pattern: str) -> None:
    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(re.compile(pattern, re.ASCII)))
    def passes(line: str) -> None:
        assert may_mean_something(line.encode("utf-8", "replace"))
        assert may_mean_something(line.upper().encode("utf-8", "replace"))

    passes()


@pytest.mark.parametrize(
    "reader", [collectives, connections, exceptions, exits], ids=lambda reader: reader.__name__
)
def test_a_reader_declares_every_pattern_that_it_searches_for(reader: ModuleType) -> None:
    compiled = {name: value for name, value in vars(reader).items() if isinstance(value, re.Pattern)}
    undeclared = {name for name, pattern in compiled.items() if pattern.pattern not in reader.PATTERNS}
    assert undeclared == REFINING[reader]


@pytest.mark.parametrize("line", [*MEANT, *FINISHED])
def test_lines_with_a_meaning_pass(line: str) -> None:
    assert may_mean_something(line.encode())


@pytest.mark.parametrize("line", FINISHED)
def test_the_line_with_which_a_trainer_ends_says_that_the_job_finished(line: str) -> None:
    assert [event.topic for event in read(f"{line}\n").events if isinstance(event, Remark)] == ["finished"]


@pytest.mark.parametrize(
    "line",
    [
        "iteration 12/500 | learning rate: 1.0E-4 | lm loss: 2.38 | grad norm: 1.2",
        "step 12 loss 0.33 lr 1e-4 tok/s 1234",
    ],
)
def test_progress_does_not(line: str) -> None:
    assert not may_mean_something(line.encode())


def test_a_warning_that_begins_like_a_quiet_line_is_read() -> None:
    assert b"INFO MNNVL" in QUIET_STARTS
    log = read("h:1:2 [0] x.cc:1 NCCL WARN MNNVL failed : IMEX not configured")
    assert any("IMEX" in event.text for event in log.events)
