"""Comments stay on their line, and no format is asked to express what no environment can hold."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given

from ncclcheck.advice.fragments.lines import comment, explained, per_host
from ncclcheck.model.report import Advice, Setting
from tests.advice.fragments.settings import any_text, setting


def named(one: Setting) -> Iterator[str]:
    yield f"<{one.name}>"


@given(any_text)
def test_a_comment_is_one_line_for_every_reader(text: str) -> None:
    assert comment(text).startswith("# ")
    assert len(comment(text).splitlines()) == 1
    assert comment(text).isprintable()


def test_reason_settings_and_notes_in_this_order_each_reason_once() -> None:
    advice = Advice(
        (setting("a", name="A"), setting("b", name="B"), setting("c", name="C", why="else")), ("end",)
    )
    first, a, b, second, c, note = explained(advice, named)
    assert (a, b, c, note) == ("<A>", "<B>", "<C>", "# end")
    assert first == "# it is wrong. Proof (asked): all 2 connections succeeded"
    assert second.startswith("# else. Proof")


def test_what_no_environment_can_hold_is_left_out_and_said() -> None:
    lines = list(explained(Advice((setting("x", name="1A"), setting("a\0b"))), named))
    assert [line for line in lines if line.startswith("<")] == []
    assert sum("left out" in line for line in lines) == 2


def test_the_words_for_one_host() -> None:
    assert per_host(setting(None, "n1", "n2", name="A")) == "only on n1, n2: A unset"
    assert per_host(setting("x y", "n1", name="A")) == "only on n1: A='x y'"
