"""Dumps of torch 2.2 to now, of both formats, whatever the name; and files that only look like one."""

from __future__ import annotations

import json
import os
import pickle  # noqa: TID251 (only to write what the reader must take, or refuse)
import random
import struct
from pathlib import Path

import pytest

from ncclcheck.logs.recorder.flight_recorder import looks_like_a_dump, operation_of, rank_in_name, read_dump
from ncclcheck.model.errors import DecodeError
from tests.logs.recorder.dumps import as_json, as_pickle, dump, entry, history

# As torch 2.13 wrote it for a Gloo group of three ranks (_dump_fr_trace_json), cut to one entry.
GLOO = (
    b'{"comm_lib_version":"","entries":[{"collective_seq_id":4,"input_dtypes":["Float"],"input_sizes":[[8]],'
    b'"is_p2p":false,"op_id":4,"output_dtypes":["Float"],"output_sizes":[[8]],"p2p_seq_id":0,"pg_id":0,'
    b'"process_group":["0","default_pg"],"profiling_name":"gloo:all_reduce","record_id":3,"retired":true,'
    b'"state":"scheduled","thread_id":"139950032690048","thread_name":"python",'
    b'"time_created_ns":1795278328569778904,"time_discovered_completed_ns":0,"time_discovered_started_ns":0,'
    b'"timeout_ms":4000}],"nccl_comm_state":{},"pg_config":{"":{"desc":"","name":"","ranks":"[0, 1, 2]"}},'
    b'"pg_status":{"0":{"last_completed_collective":"4","last_enqueued_collective":"4",'
    b'"last_started_collective":"-1"}},"version":"2.10"}'
)


def test_what_torch_wrote() -> None:
    assert looks_like_a_dump(GLOO)
    read = read_dump(GLOO, "/tmp/x/trace_1.json")
    (group,) = read.groups
    assert (read.rank, read.version) == (1, "2.10")
    assert (group.name, group.description, group.backend) == ("0", "default_pg", "gloo")
    assert (group.members, group.last) == ((0, 1, 2), 4)
    (collective,) = group.collectives
    assert (collective.sequence, collective.operation, collective.elements_in, collective.dtypes) == (
        4,
        "ALLREDUCE",
        8,
        ("Float",),
    )
    assert (collective.state, collective.timeout_ms) == ("scheduled", 4000)


@pytest.mark.parametrize("protocol", range(2, 6))  # torch writes 2
def test_json_and_pickle_say_the_same(protocol: int) -> None:
    whole = dump(history(5))
    read, again = read_dump(as_pickle(whole, protocol), "rank3"), read_dump(as_json(whole), "rank3")
    assert looks_like_a_dump(as_pickle(whole, protocol))
    assert looks_like_a_dump(as_json(whole))
    assert [group.last for group in read.groups] == [group.last for group in again.groups] == [5]
    assert read.groups[0].collectives[-1].where == "/home/me/train.py:40 in train"
    assert again.groups[0].collectives[-1].where == ""


def test_torch_2_2_dumped_a_list() -> None:
    old = {"record_id": 0, "pg_id": 3, "seq_id": 9, "profiling_name": "nccl:broadcast", "state": "started",
           "input_sizes": [[2, 4]], "output_sizes": [[2, 4]], "time_created_ns": 5, "frames": []}  # fmt: skip
    for data in (pickle.dumps([old], 2), json.dumps([old]).encode()):
        assert looks_like_a_dump(data)
        (group,) = read_dump(data, "trace_0").groups
        assert (group.name, group.members, group.last) == ("3", None, 9)
        assert group.collectives[0].elements_in == 8


def test_only_active_entries_and_a_status() -> None:
    whole = dump([], pg_status={"0": {"last_enqueued_collective": 7, "last_completed_collective": 7}})
    (group,) = read_dump(as_pickle(whole), "x_1").groups
    assert group.last == 0  # without an entry nothing says which group status "0" is of
    whole = dump([entry(9, state="started")], pg_status={"0": {"last_enqueued_collective": "12"}})
    assert read_dump(as_json(whole), "x_1").groups[0].last == 12


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("/tmp/nccl_trace_rank_3", 3),
        ("comm_lib_trace_rank_1023", 1023),
        ("/logs/run7/trace_12", 12),
        ("trace_12.json", 12),
        ("trace12.pkl.gz", 12),
        ("rank-4-attempt-2.bin", 4),
        ("dump", None),
        ("standard input", None),
    ],
)
def test_the_rank_in_a_name(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def test_the_dump_s_own_rank_comes_first() -> None:
    read = read_dump(as_json(dump(history(2), rank=5, host_name="node7")), "dump")
    assert (read.rank, read.host) == (5, "node7")


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("nccl:all_reduce", "ALLREDUCE"),
        ("nccl:_all_gather_base", "ALLGATHER_BASE"),
        ("gloo:barrier", "BARRIER"),
        ("nccl:send 0->1", "SEND"),
        ("nccl:never_heard_of", "NEVER_HEARD_OF"),
        ("", ""),
    ],
)
def test_operations_are_called_as_in_torch_s_logs(name: str, operation: str) -> None:
    assert operation_of(name) == operation


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"{",
        b'{"level": "info", "message": "profiling_name record_id"}\n',
        b"[2026-11-21 16:00:00] node1:12:34 [0] NCCL INFO pg_config",
        b"\x80\x04\x95 a pickle of something else",
        b"\x1f\x8b",
        b"node1:12:34 [0] NCCL INFO Bootstrap : Using eth0",
    ],
)
def test_no_dump(start: bytes) -> None:
    assert not looks_like_a_dump(start)


@pytest.mark.parametrize(
    "value",
    [
        {"entries": 5, "pg_config": {}, "pg_status": {}},
        {"entries": [5], "pg_config": {}},
        {"entries": [{"record_id": 1}], "pg_config": {}},
        {"entries": [{"profiling_name": 5}], "pg_config": {}},
        {"entries": [{"profiling_name": "x", "input_sizes": [["a"]]}], "pg_config": {}},
        {"entries": {}, "pg_config": []},
        "pg_config",
        {"entries": [{"profiling_name": "x", "input_sizes": 7}]},
    ],
    ids=str,
)
def test_another_shape_is_an_error_and_no_traceback(value: object) -> None:
    for data in (pickle.dumps(value, 2), json.dumps(value).encode()):
        with pytest.raises(DecodeError):
            read_dump(data, "x_1")


class Reduces:
    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self._target}",)


def test_a_hostile_dump_runs_nothing(tmp_path: Path) -> None:
    data = pickle.dumps({**dump(history(2)), "extra": Reduces(tmp_path / "ran")}, 2)
    assert looks_like_a_dump(data)
    with pytest.raises(DecodeError, match="object in it"):
        read_dump(data, "x_1")
    assert not (tmp_path / "ran").exists()


def _shared_entries(levels: bytes) -> bytes:
    """A dump whose `entries` is a list of lists that hold each other many times."""
    return b"\x80\x02}(X\x09\x00\x00\x00pg_config}X\x07\x00\x00\x00entries" + levels + b"u."


def test_sharing_that_would_never_end_is_given_up() -> None:
    name = b"X\x0e\x00\x00\x00profiling_nameX\x01\x00\x00\x00xX\x0b\x00\x00\x00input_sizes"
    # input_sizes is a list of 20,000 times one list of 20,000 numbers: 400 million, in 80 kB
    numbers = b"](" + b"K\x01" * 20_000 + b"eq\x00"
    sizes = b"](" + b"h\x00" * 20_000 + b"e"
    data = _shared_entries(b"](}(X\x01\x00\x00\x00n" + numbers + name + sizes + b"ue")
    with pytest.raises(DecodeError, match="beyond any real one"):
        read_dump(data, "x_1")
    loop = b"]q\x05h\x05a"
    with pytest.raises(DecodeError):
        read_dump(_shared_entries(b"](}(" + name + loop + b"ue"), "x_1")
    entries = b"}q\x07](" + b"h\x07" * 300_000 + b"e"
    with pytest.raises(DecodeError):
        read_dump(_shared_entries(entries.replace(b"}q\x07](", b"](}q\x07", 1)), "x_1")


def test_json_nested_without_end() -> None:
    deep = b'{"pg_config":' + b"[" * 1_000_000
    with pytest.raises(DecodeError):
        read_dump(deep, "x_1")


def test_damaged_dumps_end_in_a_sentence() -> None:
    chance = random.Random(11)  # noqa: S311
    for whole in (as_pickle(dump(history(3))), as_json(dump(history(3))), GLOO):
        for _ in range(1500):
            data = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            cut = bytes(data[: chance.randint(1, len(data))])
            try:
                read_dump(cut, "x_1")
            except DecodeError as error:
                assert str(error)  # noqa: PT017


def test_a_length_beyond_the_file() -> None:
    with pytest.raises(DecodeError):
        read_dump(b"\x80\x02\x8d" + struct.pack("<Q", 1 << 62) + b"pg_config", "x_1")


def test_of_a_long_history_the_end_is_kept() -> None:
    read = read_dump(as_pickle(dump(history(3000))), "x_1")
    numbers = [collective.sequence for collective in read.groups[0].collectives]
    assert numbers == list(range(2744, 3001))
