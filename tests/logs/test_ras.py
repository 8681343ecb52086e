"""Answers of NCCL RAS of several versions, and what two of them tell together."""

from __future__ import annotations

import random
import time

import pytest

from ncclcheck.logs.ras import log_of, read_status
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.events import RankBehind, RankDiffers, RankWaits, Remark
from tests.logs.ras_answers import (
    COUNTS_2_24,
    COUNTS_2_28,
    HEALTHY,
    MISSING_2_24,
    MISSING_2_30,
    MISSING_JSON_2_28_9,
    as_json,
)

EVEN = dict.fromkeys(range(8), 40)


def events(now: str, before: str | None = None) -> list[object]:
    status = read_status(now.encode())
    return list(log_of(read_status((before or now).encode()), status, "NCCL RAS at h:28028", len(now)).events)


def behind(now: str, before: str | None = None) -> list[tuple[int | None, str | None, str]]:
    return [
        (event.place.rank, event.place.host, event.how)
        for event in events(now, before)
        if isinstance(event, RankBehind)
    ]


def test_the_answer_of_2_28_9_lacks_a_comma_and_is_read() -> None:
    status = read_status(MISSING_JSON_2_28_9.encode())
    assert [rank.rank for rank in status.communicators[0].missing] == [5]
    assert status.version == "2.28.9"
    with pytest.raises(DecodeError):
        read_status(MISSING_JSON_2_28_9.replace('"host"', '"host').encode())


def test_one_count_of_all_collectives() -> None:
    assert behind(COUNTS_2_24) == [
        (0, "172.16.64.210", "not-entered"),
        (2, "172.16.64.210", "not-entered"),
    ]
    first = events(COUNTS_2_24)[0]
    assert isinstance(first, RankBehind)
    assert "rank 0 (process 483072 on 172.16.64.210) launched 6649 collectives in communicator" in first.text
    assert "30 others up to 6650" in first.text


def test_a_count_of_each_collective() -> None:
    assert behind(COUNTS_2_28) == [(7, "172.16.64.213", "not-entered")] * 2
    assert {event.operation for event in events(COUNTS_2_28) if isinstance(event, RankBehind)} == {
        "AllReduce",
        "Broadcast",
    }


@pytest.mark.parametrize(("answer", "host"), [(MISSING_2_24, None), (MISSING_2_30, "172.16.64.213")])
def test_a_missing_rank(answer: str, host: str | None) -> None:
    assert behind(answer) == [(21, host, "no-answer")]


def test_json() -> None:
    assert read_status(as_json(EVEN).encode()).version == "2.29.1"
    assert behind(as_json({**EVEN, 5: 39})) == [(5, "10.0.0.2", "not-entered")]
    assert behind(as_json(EVEN, missing={8: False, 9: True})) == [
        (8, "10.0.0.4", "no-answer"),
        (9, "10.0.0.4", "dead"),
    ]


def test_counts_that_grow_are_no_hang() -> None:
    found = events(as_json({**EVEN, 5: 39}), as_json({**EVEN, 5: 38}))
    assert [type(event) for event in found] == [Remark]
    assert isinstance(found[0], Remark)
    assert found[0].topic == "harmless"


def test_counts_that_stand_are_not_called_healthy() -> None:
    for answer in (as_json(EVEN), HEALTHY):
        found = events(answer)
        assert [type(event) for event in found] == [RankWaits]


def test_a_rank_that_went_on_alone() -> None:
    (odd,) = events(as_json({**EVEN, 0: 41}))
    assert isinstance(odd, RankDiffers)
    assert (odd.place.rank, odd.alone) == (0, True)


def test_errors_are_told() -> None:
    found = events(as_json(EVEN, async_errors={3: 6}))
    assert [remark.text for remark in found if isinstance(remark, Remark)] == [
        "rank 3 (process 1003 on 10.0.0.1) reports async error 6 (ncclResult_t)"
    ]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{",
        b"{}",
        b'{"communicators": 5}',
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\x00" * 50,
        b"{" * 100_000,
    ],
)
def test_what_is_no_answer(answer: bytes) -> None:
    with pytest.raises(DecodeError):
        read_status(answer)


def test_damaged_answers_end_in_a_status_or_a_sentence() -> None:
    chance = random.Random(3)  # noqa: S311
    for whole in (COUNTS_2_24, COUNTS_2_28, MISSING_2_30, as_json(EVEN, missing={9: True})):
        for _ in range(400):
            data = bytearray(whole.encode())
            for _ in range(chance.randint(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                status = read_status(bytes(data[chance.randint(0, 30) :]))
            except DecodeError:
                continue
            log_of(status, status, "x", 1)


def test_the_time_of_a_line_grows_with_its_length_only() -> None:
    def least_s(numbers: int) -> float:
        line = ("Job summary\n#0-0 (1) MISMATCH\n  Rank 1 -- GPU " + "1 " * numbers + "\n").encode()
        spent = []
        for _ in range(3):
            began = time.process_time()
            read_status(line)
            spent.append(time.process_time() - began)
        return min(spent)

    assert least_s(500_000) < 40 * (least_s(50_000) + 0.001)  # 100 times as long, if with the square
