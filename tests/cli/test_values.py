"""Numbers and lists on a command line."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclcheck import timeouts
from ncclcheck.cli.values import FileName, NameList, Percentage, Seconds, WholeNumber
from ncclcheck.model.errors import UsageError

OPTION = click.Option(["--node-rank"])


@given(st.text(max_size=8))
def test_no_text_gets_past_as_an_impossible_number(text: str) -> None:
    try:
        number = WholeNumber(0, 9).convert(text, OPTION, None)
    except UsageError:
        return
    assert 0 <= number <= 9


@given(st.text(max_size=8) | st.floats().map(str))
def test_seconds_are_finite_and_above_zero(text: str) -> None:
    try:
        seconds = Seconds().convert(text, OPTION, None)
    except UsageError:
        return
    assert 0 < seconds <= timeouts.LONGEST_OPTION_S


@pytest.mark.parametrize(("text", "seconds"), [("1", 1.0), ("0.5", 0.5), (".5", 0.5), (" 30 ", 30.0)])
def test_seconds_are_read_as_written(text: str, seconds: float) -> None:
    assert Seconds().convert(text, OPTION, None) == seconds


def test_names_are_separated_by_commas() -> None:
    assert NameList().convert("NC1, gpu-count", OPTION, None) == ("NC1", "gpu-count")
    with pytest.raises(UsageError, match="separated by single commas"):
        NameList().convert("a,,b", OPTION, None)


def test_a_refusal_names_the_option_the_value_and_what_is_right() -> None:
    with pytest.raises(UsageError, match="--node-rank '10': expected a whole number from 0 to 9"):
        WholeNumber(0, 9).convert("10", OPTION, None)


@pytest.mark.parametrize("text", ["10", "10%"])
def test_a_percentage_may_have_its_sign(text: str) -> None:
    assert Percentage(1, 100).convert(text, OPTION, None) == 10


def test_a_percentage_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a whole number from 1 to 100"):
        Percentage(1, 100).convert("101%", OPTION, None)


def test_without_an_option_the_value_is_still_named() -> None:
    with pytest.raises(UsageError, match="value 'x'"):
        WholeNumber(0, 1).convert("x", None, None)


def test_a_file_has_a_name() -> None:
    assert FileName().convert("a b", OPTION, None) == "a b"
    with pytest.raises(UsageError, match="--node-rank '': expected the name of a file"):
        FileName().convert("", OPTION, None)
