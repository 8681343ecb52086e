"""Pickles of plain containers are read; no other pickle does anything, costs memory or time."""

from __future__ import annotations

import os
import pickle  # noqa: TID251 (only to write what the reader must take, or refuse)
import random
import struct
import tracemalloc
from collections import OrderedDict, defaultdict
from pathlib import Path, PurePosixPath

import pytest

from ncclcheck.model.errors import DecodeError
from ncclcheck.model.formats.pickles import read_pickle

PLAIN = {
    "version": "2.10",
    "entries": [{"input_sizes": [[8, 2], []], "process_group": ("0", "default_pg"), "n": None, "t": True}],
    "numbers": [0, 1, -1, 255, 256, 65536, -(2**31), 2**63, 1795278328495135544, 0.5, False],
    "bytes": b"\x00\xff",
    "long": "é" * 300,
    "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_containers_of_every_protocol(protocol: int) -> None:
    plain = dict(PLAIN)
    if protocol < 3:
        del plain["bytes"]  # before protocol 3 bytes are a call of codecs.encode
    assert read_pickle(pickle.dumps(plain, protocol)) == plain


def test_a_container_may_hold_itself_and_be_shared() -> None:
    loop: list[object] = []
    loop.append(loop)
    read = read_pickle(pickle.dumps(loop))
    assert isinstance(read, list)
    assert read[0] is read


class Reduces:
    """A pickle of it runs a command when Python's own reader takes it."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self._target}",)


class Built:
    """An ordinary object: NEWOBJ and BUILD."""

    def __init__(self) -> None:
        self.x = 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_a_command_runs_nothing(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "ran"
    with pytest.raises(DecodeError, match="object in it"):
        read_pickle(pickle.dumps({"entries": [Reduces(target)]}, protocol))
    assert not target.exists()


@pytest.mark.parametrize(
    "value",
    [
        Built(),
        OrderedDict(a=1),
        defaultdict(list),
        {1, 2},
        frozenset({1}),
        bytearray(b"x"),
        PurePosixPath("/a"),
        os.system,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_no_object_of_any_class_is_built(value: object, protocol: int) -> None:
    with pytest.raises(DecodeError, match="object in it"):
        read_pickle(pickle.dumps([value], protocol))


REFUSED = {
    "GLOBAL": b"cos\nsystem\n.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "INST": b"(S'id'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nS'id'\no.",
    "NEWOBJ": b"\x80\x02cbuiltins\nobject\n)\x81.",
    "NEWOBJ alone": b"\x80\x02N)\x81.",
    "NEWOBJ_EX": b"\x80\x04N)}\x92.",
    "REDUCE": b"N)R.",
    "BUILD": b"}}b.",
    "EXT1": b"\x82\x01.",
    "EXT2": b"\x83\x01\x00.",
    "EXT4": b"\x84\x01\x00\x00\x00.",
    "PERSID": b"Pabc\n.",
    "BINPERSID": b"NQ.",
    "EMPTY_SET": b"\x8f.",
    "BYTEARRAY8": b"\x96\x01\x00\x00\x00\x00\x00\x00\x00x.",
    "NEXT_BUFFER": b"\x97.",
    "STRING": b"S'id'\n.",
    "unknown": b"\xfe.",
    "a huge LONG4": b"\x8b\xff\xff\xff\x7f",
    "a negative LONG4": b"\x8b\xff\xff\xff\xff",
    "a LONG1 of 255 bytes": b"\x8a\xff" + b"\x01" * 255 + b".",
    "BINBYTES8 of 2^63": b"\x8e" + struct.pack("<Q", 2**63) + b"x.",
    "BINUNICODE8 of 2^40": b"\x8d" + struct.pack("<Q", 2**40) + b"x.",
    "a negative BINSTRING": b"T\xff\xff\xff\xffx.",
    "many digits": b"I" + b"9" * 100_000 + b"\n.",
    "a line without an end": b"V" + b"x" * 1000,
    "a mark as the value": b"(.",
    "a mark remembered": b"(q\x00.",
    "nothing": b"",
    "nothing on the stack": b".",
    "no end": b"N",
    "two values": b"NN.",
    "no mark": b"NNt.",
    "append to a dict": b"}Na.",
    "items of a list": b"]NNs.",
    "an odd number of items": b"}(Nu.",
    "a number as key": b"}K\x01K\x02s.",
    "a list as key": b"}]K\x02s.",
    "a get of nothing": b"h\x05.",
    "a memo of -1": b"Np-1\n.",
    "protocol 9": b"\x80\x09N.",
}  # fmt: skip


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_pickle(data)


def test_doubling_costs_no_memory() -> None:
    bomb = b"](K\x01e" + b"q\x00](h\x00h\x00e" * 10_000 + b"."
    # each list holds the one before twice: 2^10000 elements to whoever walks it, two pointers each in memory
    data = b"\x80\x02]q\x00" + b"".join(b"](h\x00h\x00eq\x00" for _ in range(10_000)) + b"."
    tracemalloc.start()
    with pytest.raises(DecodeError):
        read_pickle(bomb)
    with pytest.raises(DecodeError):
        read_pickle(data)  # the lower lists are left on the stack: more than one value
    assert tracemalloc.get_traced_memory()[1] < 30_000_000
    tracemalloc.stop()


def test_deep_nesting_does_not_recurse() -> None:
    depth = 200_000
    value = read_pickle(b"]" * depth + b"a" * (depth - 1) + b".")
    seen = 0
    while isinstance(value, list) and value:
        value = value[0]
        seen += 1
    assert seen == depth - 1


def test_damaged_pickles_end_in_a_sentence() -> None:
    whole = pickle.dumps(PLAIN, 4)
    chance = random.Random(7)  # noqa: S311
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = bytes(data[: chance.randint(1, len(data))])
        try:
            read_pickle(cut)
        except DecodeError as error:
            assert str(error)  # noqa: PT017


def test_a_pickle_of_many_steps_is_given_up() -> None:
    with pytest.raises(DecodeError, match="more than 100 steps"):
        read_pickle(b"]" * 200 + b".", most_operations=100)
