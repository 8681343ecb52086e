"""Tables of names: what two of them differ in is told, whatever they have in common."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ncclcheck.model.formats.name_sketch import NameSketch, difference

# 60 characters of up to 4 bytes: no file name is longer than 255 bytes (NAME_MAX, linux/limits.h)
NAME = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=60)
NAMES = st.sets(NAME, max_size=8)


def table(names: Iterable[str]) -> tuple[str, ...]:
    sketch = NameSketch()
    for name in names:
        sketch.add(name.encode(), zlib.crc32(name.encode()))
    return sketch.cells()


def _is_closed(cells: list[frozenset[int]]) -> bool:
    """Return whether some names cover each other in all of their cells, so that none is alone in one."""
    left = list(cells)
    while alone := next(
        (pair for pair in left if any(sum(place in p for p in left) == 1 for place in pair)), None
    ):
        left.remove(alone)
    return bool(left)


@settings(max_examples=100)
@given(NAMES, NAMES, NAMES)
@example(common=set(), left=set(), right={":", "s{mG\U0003b9e0|"})  # both names lie in the same two cells
@example(common=set(), left={"\x85\U0003464e"}, right={"🇺🇸", "😍"})  # two less one count as one
def test_exactly_what_one_has_alone_is_told(common: set[str], left: set[str], right: set[str]) -> None:
    first, second = common | left, common | right
    only_first, only_second, is_all = difference(table(first), table(second))
    assert set(only_first) <= first - second
    assert set(only_second) <= second - first
    assert is_all == (set(only_first) == first - second and set(only_second) == second - first)
    # Names that share both of their cells cannot be told apart, and the answer says that it is not whole.
    cells = [
        frozenset(place for place, cell in enumerate(table([name])) if cell != "0") for name in first ^ second
    ]
    assert is_all or len(set(cells)) < len(cells) or _is_closed(cells)


def test_a_few_of_very_many_names_are_told_in_any_order() -> None:
    names = [f"train/part-{number:05d}/shard-{number}.tar" for number in range(20_000)]
    other = [*names]
    gone, more = other.pop(12_345), "train/extra.tar"
    other.append(more)
    other.reverse()
    assert difference(table(names), table(other)) == ((gone,), (more,), True)


@pytest.mark.parametrize("count", [5, 20, 40])
def test_dozens_of_different_names_are_told(count: int) -> None:
    told = [difference(table(f"{seed}-{one}" for one in range(count)), table(()))[2] for seed in range(50)]
    assert sum(told) >= 40


def test_too_many_differences_are_said_not_to_be_all() -> None:
    first, second, is_all = difference(table(map(str, range(5000))), table(()))
    assert not is_all
    assert set(first) <= set(map(str, range(5000)))
    assert second == ()


def test_what_nobody_filled_or_somebody_made_up_tells_nothing() -> None:
    assert difference((), table("a")) == ((), (), False)
    assert difference((), ()) == ((), (), False)
    size = len(table("a"))
    for made_up in ("zz", "", "f" * 5000, "-1", "100000001"):
        assert difference((made_up,) * size, table("a"))[2] is False


def test_of_a_very_long_name_the_end_is_told() -> None:
    name = "x" * 500 + "end"
    assert difference(table([name]), table(()))[0] == (name[-240:],)
