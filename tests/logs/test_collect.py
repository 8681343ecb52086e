"""The reader of lines: bounded, and no bytes that it does not take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncclcheck.logs import collect
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.split import batches
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.events import CollectiveTimeout, Log, Remark
from tests.checks.logs.explaining import explain, read

PIECES = st.sampled_from(
    [
        b"NCCL ", b"NCCL INFO ", b"NCCL WARN ", b"n1:1:2 [0] ", b"[rank3]: ", b"3: ",
        b"Traceback (most recent call last):", b"\n", b"\r", b"\x1b[31m", b"\x00", b"\xff\xfe", b"Error: ",
        b"RuntimeError: x", b"Channel 00 : 0[0] -> 1[1] via ", b"connect to 1<2> failed : ", b"rank 99999999999 ",
        b"exitcode  : -9", b"  host      : ", b"WorkNCCL(SeqNum=1, ", b"collective operation timeout: ",
        b"Timed out waiting 5ms for recv", b"mtu 99999", b"[0]", b"(", b"\xc3", b"\xe2\x82",
    ]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=40))
def test_any_bytes_give_an_answer(pieces: list[bytes]) -> None:
    collector = Collector()
    collector.read("x", batches([b"".join(pieces)]))
    log = collector.log()
    assert decode(encode(log), Log) == log
    assert explain(b"".join(pieces).decode("latin-1")).outcome in {
        "healthy",
        "named",
        "undetermined",
        "nothing",
    }


def test_one_line_repeated_a_million_times_is_kept_a_few_times() -> None:
    line = b"n1:1:2 [0] x.cc:1 NCCL WARN socketProgress: Connection closed by remote peer 10.0.0.%d<4>\n"
    collector = Collector()
    collector.read("x", batches([b"".join(line % number for number in range(100_000))]))
    assert len(collector.log().events) <= collect.KEPT_OF_A_SHAPE * 3


def test_every_rank_is_heard_though_all_say_the_same() -> None:
    text = "".join(
        f"[rank{rank}]:[E 1 x.cpp:1] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 ms\n"
        for rank in range(1024)
    )
    ranks = {event.place.rank for event in read(text).events if isinstance(event, CollectiveTimeout)}
    assert ranks == set(range(1024))


@pytest.mark.parametrize(
    "stamp", ["2025-03-14T09:41:07.%03dZ ", "[2025-03-14 09:41:07,%03d] ", "Mar 14 09:41:%02d n1 train[7]: "]
)
def test_every_rank_is_heard_whatever_time_stamp_stands_before_its_label(stamp: str) -> None:
    text = "".join(
        f"{stamp % (rank % 60)}[rank{rank}]: RuntimeError: CUDA out of memory\n" for rank in range(64)
    )
    ranks = {event.place.rank for event in read(text).events if isinstance(event, Remark)}
    assert ranks == set(range(64))


def test_the_end_of_an_endless_stream_of_errors_is_seen() -> None:
    noise = b"".join(b"error %s\n" % "".join(word).encode() for word in product("abcdefgh", repeat=4))
    collector = Collector(freely_looked_at=1000)
    collector.read("x", batches([*[noise] * 4, b"[rank5]: torch.OutOfMemoryError: CUDA out of memory.\n"]))
    assert any(isinstance(event, Remark) and event.topic == "cuda-oom" for event in collector.log().events)


@pytest.mark.parametrize("after", [0, 1, 400])
def test_the_end_of_a_file_is_seen_however_many_errors_stand_before_it(after: int) -> None:
    words = ["".join(word).encode() for word in product("ghij", repeat=6)]
    noise = [b"error %s" % word for word in words]
    collector = Collector(freely_looked_at=100)
    out_of_memory = b"[rank5]: torch.OutOfMemoryError: CUDA out of memory."
    collector.read(
        "x", [noise[:500], noise[500:900], [*noise[900:3000], out_of_memory, *noise[3000:][:after]]]
    )
    log = collector.log()
    assert any(isinstance(event, Remark) and event.topic == "cuda-oom" for event in log.events)
    assert log.dropped > 0


def test_the_end_of_each_file_is_seen() -> None:
    noise = [b"error %s" % "".join(word).encode() for word in product("ghij", repeat=5)]
    collector = Collector(freely_looked_at=100)
    collector.read("a", [noise])
    collector.read("b", [[*noise[:300], b"[rank5]: torch.OutOfMemoryError: CUDA out of memory.", b"bye"]])
    found = [
        event for event in collector.log().events if isinstance(event, Remark) and event.topic == "cuda-oom"
    ]
    assert [(event.place.file, event.place.line) for event in found] == [("b", 301)]


def test_a_line_that_was_met_often_enough_is_not_left_out() -> None:
    noise = [b"error %s" % "".join(word).encode() for word in product("ghij", repeat=4)]
    known = b"[rank1]: error of the disk"
    collector = Collector(freely_looked_at=200)
    collector.read("x", [[*[known] * 10, *noise[:190]], [*noise[190:220], *[known] * 1000]])
    assert collector.log().dropped == 0


def test_what_came_before_the_reading_failed_is_seen() -> None:
    def batches_until_the_mount_dies() -> Iterator[list[bytes]]:
        yield [b"step 1 loss 2.0"]
        yield [b"[rank5]: torch.OutOfMemoryError: CUDA out of memory."]
        raise OSError("Stale file handle")

    collector = Collector()
    with pytest.raises(OSError, match="Stale"):
        collector.read("x", batches_until_the_mount_dies())
    assert any(isinstance(event, Remark) and event.topic == "cuda-oom" for event in collector.log().events)


def test_the_bars_of_a_job_that_works_use_up_no_look() -> None:
    bars = [b"  %d%%|##        | %d/900 [00:%02d<01:00, 1.2it/s]" % (n // 9, n, n % 60) for n in range(900)]
    collector = Collector(freely_looked_at=20)
    collector.read("x", [bars, [b"[rank5]: torch.OutOfMemoryError: CUDA out of memory."], bars, bars])
    log = collector.log()
    assert any(isinstance(event, Remark) and event.topic == "cuda-oom" for event in log.events)
    assert log.dropped == 0


def test_a_progress_bar_is_one_line_of_which_the_last_state_counts() -> None:
    log = read("a:   1%|\ra:  50%|\ra:  99%|\n")
    assert [(word.last.line, word.last_text) for word in log.words] == [(1, " 99%|")] or log.words[
        0
    ].last_text.endswith("99%|")


def test_lines_are_numbered_as_grep_numbers_them() -> None:
    assert [event.place.line for event in read("a\r\nb\rc\nValueError: x\n").events] == [3]


def test_the_version_that_rank_0_says_at_level_info_is_its_own() -> None:
    log = read(
        "n1:101:120 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\nn1:101:120 [0] NCCL INFO Using network IB\n"
    )
    assert [(process.nccl_version, process.cuda_version) for process in log.processes] == [("2.28.9", "13.0")]
