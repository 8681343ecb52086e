"""The table of NCCL's WARN texts: it covers every version, and says of each group what is true of its texts."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest

from ncclcheck.checks.registry import all_checks
from ncclcheck.logs.messages.known import groups, meaning_of

TEXTS = Path(__file__).parent / "nccl_texts.tsv"  # scripts/message_texts --write
COVERED = 0.97


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


@cache
def texts() -> tuple[tuple[str, str, str], ...]:
    rows = (line.split("\t") for line in TEXTS.read_text().splitlines())
    return tuple((text, first, last) for text, first, last, _ in rows)


def versions() -> list[str]:
    return sorted({name for _, first, last in texts() for name in (first, last)}, key=version)


@pytest.mark.parametrize("release", versions())
def test_nearly_all_texts_of_every_version_are_known(release: str) -> None:
    here = [text for text, first, last in texts() if version(first) <= version(release) <= version(last)]
    unknown = [text for text in here if meaning_of(text) is None]
    assert len(here) > 200
    assert len(unknown) <= (1 - COVERED) * len(here), unknown


def test_the_versions_of_a_group_are_those_of_its_texts() -> None:
    ranges: dict[str, tuple[str, str]] = {}
    for text, first, last in texts():
        group = meaning_of(text)
        if group is not None:
            low, high = ranges.get(group.id, (first, last))
            ranges[group.id] = min(low, first, key=version), max(high, last, key=version)
    told = {group.id: group.versions for group in groups()}
    assert told == {
        group.id: " to ".join(ranges[group.id]) if group.id in ranges else "" for group in groups()
    }


def test_a_cause_is_one_that_explain_knows() -> None:
    slugs = {check.slug for check in all_checks("log")}
    for group in groups():
        assert (group.kind == "cause") == bool(group.cause) == bool(group.certainty), group.id
        assert not group.cause or group.cause in slugs, group.id
    assert len({group.id for group in groups()}) == len(groups())


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("Error while creating shared memory segment /dev/shm/nccl-KWfVyt (size 5967872)", "shm-create"),
        (
            "Error while attaching to shared memory segment /dev/shm/nccl- (size 1), error: No such",
            "shm-attach",
        ),
        ("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "ib-memory"),
        ("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_2:1", "ib-modify-qp"),
        ("Cuda failure 'out of memory'", "cuda-memory"),
        ("Cuda failure 1 'invalid argument'", "cuda-failure"),
        ("NET/IB: Got completion from peer 10.0.0.1<1> with status=12 opcode=0", "ib-completion"),
        ("Cannot initialize CollNet, using point-to-point network instead", "plugin-fallback"),
        ("NET/OFI Couldn't find any optimal provider", "ofi"),
    ],
)
def test_the_text_with_the_most_letters_wins(text: str, group: str) -> None:
    found = meaning_of(text)
    assert found is not None
    assert found.id == group


def test_a_text_that_nccl_does_not_print_is_not_known() -> None:
    assert meaning_of("the program says something else") is None
    assert meaning_of("") is None


def test_a_long_hostile_text_takes_no_longer_than_its_length_explains() -> None:
    hostile = "NET/IB : " + "* : wrong status=" * 20_000
    meaning_of(hostile)
    began = time.process_time()
    for _ in range(20):
        meaning_of(hostile)
    assert time.process_time() - began < 1
