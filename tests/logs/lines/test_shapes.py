"""Shapes and labels of lines."""

from __future__ import annotations

import pytest

from ncclcheck.logs.lines.shapes import Allowance, Repetitions, label_of, shape_of, shapes_of


def test_numbers_of_both_kinds_are_no_part_of_a_shape() -> None:
    first = b"AllReduce: opCount 1f sendbuff 0x7f12ab count 77"
    assert shape_of(first) == shape_of(b"AllReduce: opCount 0 sendbuff 0x55e0001 count 1")
    assert shape_of(first) != shape_of(b"AllGather: opCount 1f sendbuff 0x7f12ab count 77")
    assert shape_of(first, "one") != shape_of(first, "another")


def test_many_shapes_at_once_are_those_of_each_line() -> None:
    lines = [b"step 3 of 0x7f", b"", b"\xff\xfe", b"abc"]
    assert list(shapes_of(lines)) == [shape_of(line) for line in lines]


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (b"  17: hello", b"  17:"),
        (b"17: [rank3]: hello", b"17: [rank3]:"),
        (b"[rank3]: hello", b"[rank3]:"),
        (b"2025-03-14T09:41:07.123456Z [rank3]: hello", b"[rank3]:"),
        (b"2025-03-14T09:41:07.123456Z   17: hello", b"  17:"),
        (b"17: 2025-03-14T09:41:07.123456Z [rank3]: hello", b"17: [rank3]:"),
        (b"[2025-03-14 09:41:07,123] [rank3]: hello", b"[rank3]:"),
        (b"Mar 14 09:41:07 n1 train[7]: hello", b"n1 train[7]:"),
        (b"  7: 2025-03-14T09:41:07.123456Z [rank3]: hello", b"  7: [rank3]:"),
        (b"09:41:07 hello", b""),
        (b" 45%|####  | 9/20 [00:05<01:00]", b""),
        (b"hello", b""),
        (b"", b""),
    ],
)
def test_a_time_stamp_is_no_part_of_a_label(line: bytes, label: bytes) -> None:
    assert label_of(line) == label


def test_repetitions_are_counted_up_to_a_bound() -> None:
    some = Repetitions(enough=2, most=1)
    assert [some.is_one_more(1) for _ in range(3)] == [False, False, True]
    assert some.has_enough(1)
    assert [some.is_one_more(2) for _ in range(3)] == [False, False, False], "no room to count it"


def test_after_the_free_ones_each_batch_has_its_own() -> None:
    some = Allowance(freely=3, per_batch=1)
    some.refill()
    assert [some.take() for _ in range(4)] == [True, True, True, False]
    some.refill()
    assert [some.take() for _ in range(2)] == [True, False]
