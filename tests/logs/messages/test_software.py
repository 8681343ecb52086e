"""The tables of other software's messages: what they say holds together, and explain does what they say."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ncclcheck.checks.registry import all_checks
from ncclcheck.logs.messages.known import Group, groups
from ncclcheck.logs.messages.software import SHORTEST_NEEDLE, message_in, needle, software_groups
from tests.logs.messages.known_texts import FILLED, is_known
from tests.logs.rounds import explain

TEXTS = Path(__file__).parent / "texts"  # scripts/message_texts --write
# Share of a source's texts that explain knows: by a table, a topic or a reader. Of UCX, Slurm, Hydra and Gloo many are
# known by what the program prints before each of them only.
SHARES = {
    "gloo": 0.97,
    "ucx": 0.97,
    "slurm": 0.97,
    "prrte": 0.5,
    "hydra": 0.9,
    "aws-ofi-nccl": 0.97,
    "sharp": 0.97,
    "torch": 0.96,
    "torch-library": 0.9,  # the rest are parts of sentences
    "accelerate": 0.97,
    "lightning": 0.97,
    "deepspeed": 0.95,
    "nccl-tests": 0.85,
    "sglang": 0.97,
    "vllm": 0.96,
    "kernel": 0.4,  # the rest are parts of a report, whose first line is known, or notes
    "kernel-mlx5": 0.97,
    "kernel-efa": 0.95,
    "horovod": 0.7,  # the rest are parts of sentences, and notes
    "horovod-python": 0.94,
    "jax": 0.86,  # the rest choose a back end
    "jax-library": 0.5,  # the rest are parts of sentences, and notes
    "ray-library": 0.35,  # the rest are parts of sentences
}


@pytest.mark.parametrize("source", sorted(SHARES))
def test_most_texts_of_a_source_are_known(source: str) -> None:
    texts = [line.split("\t")[0] for line in (TEXTS / f"{source}.tsv").read_text().splitlines()]
    unknown = [text for text in texts if not is_known(text, source)]
    assert len(unknown) <= (1 - SHARES[source]) * len(texts), unknown


def test_ids_are_unique_and_causes_are_known() -> None:
    slugs = {check.slug for check in all_checks("log")}
    ids = [group.id for group in (*groups(), *software_groups())]
    assert len(set(ids)) == len(ids)
    for group in software_groups():
        assert (group.kind == "cause") == bool(group.cause) == bool(group.certainty), group.id
        assert not group.cause or group.cause in slugs, group.id
        assert group.source, group.id
        assert group.means, group.id


def test_every_text_has_a_part_that_is_rare_enough_to_search_for() -> None:
    short = [
        text for group in software_groups() for text in group.texts if len(needle(text)) < SHORTEST_NEEDLE
    ]
    assert short == []


def test_no_text_stands_in_two_groups() -> None:
    texts = [text for group in software_groups() for text in group.texts]
    assert sorted(text for text in set(texts) if texts.count(text) > 1) == []


def everything() -> list[tuple[Group, str]]:
    return [(group, text) for group in software_groups() for text in group.texts]


def test_explain_sees_every_text_and_calls_no_failure_fine() -> None:
    """One log per text: what the tables call a cause or a consequence is never fine, and no text is overlooked."""
    fine, unseen = [], []
    for group, text in everything():
        line = text.replace("*", FILLED)
        if not (line.startswith(FILLED) or message_in(line)):
            unseen.append(text)
        result = explain("job.log", f"step 1\n{line}\n".encode())
        if group.kind != "harmless" and result.outcome in ("healthy", "nothing"):
            fine.append(text)
    assert unseen == []
    assert fine == []


def test_a_cause_that_is_certain_is_named() -> None:
    wrong = []
    for group, text in everything():
        if group.certainty not in ("certain", "likely"):
            continue
        found = explain("job.log", f"step 1\n{text.replace('*', FILLED)}\n".encode())
        if found.outcome != "named":
            wrong.append((group.id, text, found.outcome))
    assert wrong == []


def test_a_job_that_finished_afterwards_worked_unless_the_message_ends_it() -> None:
    for group, text in everything():
        log = f"{text.replace('*', FILLED)}\nstep 2\nTraining finished successfully\n"
        outcome = explain("job.log", log.encode()).outcome
        if group.kind == "harmless":
            assert outcome == "healthy", text
        elif group.ends and group.kind == "cause":
            assert outcome == ("undetermined" if group.certainty == "possible" else "named"), text


@pytest.mark.parametrize(
    ("line", "group"),
    [
        (
            "[rank0]:[E1122 10:00:00 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout",
            "torch-watchdog",
        ),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "container-no-gpu",
        ),
        (
            "[1732270000.1] [node7:811  :0] ib_mlx5_log.c:1 UCX  ERROR Transport retry count exceeded on mlx5_0:1",
            "ucx-link",
        ),
        ("[1732270000.1] [node7:811  :0]  x.c:1  UCX  ERROR something else", "ucx-error"),
    ],
)
def test_the_text_with_the_most_letters_wins(line: str, group: str) -> None:
    found = message_in(line)
    assert found is not None
    assert found.id == group


def test_long_hostile_lines_take_no_longer_than_their_length_explains() -> None:
    hostile = "UCX  ERROR ssh: connect to host nodes are available: " * 20_000
    message_in(hostile)
    began = time.process_time()
    for _ in range(50):
        message_in(hostile)
    assert time.process_time() - began < 1
