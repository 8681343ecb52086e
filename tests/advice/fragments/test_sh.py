"""The lines can be evaluated by real shells, and nothing in them is executed that should not be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncclcheck.advice.fragments.sh import render_sh
from ncclcheck.model.report import Advice
from tests.advice.fragments.settings import EVIL, HERE, any_text, in_each_shell, interface_names, run, setting


def value_in(shell: str, advice: Advice) -> str:
    """NCCL_SOCKET_IFNAME after an eval of the text, as `eval "$(ncclcheck env)"` does it."""
    script = 'eval "$1"; printf %s "${NCCL_SOCKET_IFNAME-unset}"'
    return run(shell, script, "sh", render_sh(advice).removesuffix("\n"))


@in_each_shell
@pytest.mark.parametrize("value", [*EVIL, "a\nb", "a\n", "é\n\n"])
def test_a_shell_gets_exactly_the_advised_value(shell: str, value: str) -> None:
    assert value_in(shell, Advice((setting(value),))) == value


@in_each_shell
@settings(max_examples=40, deadline=None)
@given(name=interface_names, why=any_text, note=any_text, host=any_text.filter(lambda text: text != HERE))
def test_any_name_reason_note_and_host_are_words_and_never_code(
    shell: str, name: str, why: str, note: str, host: str
) -> None:
    advice = Advice((setting(name, why=why), setting("other", host, why=why)), (note,))
    assert value_in(shell, advice) == name


@given(st.lists(any_text, max_size=3), any_text, any_text)
def test_what_is_printed_has_no_character_that_a_terminal_would_obey(
    hosts: list[str], value: str, why: str
) -> None:
    text = render_sh(Advice((setting(value, *hosts, why=why),), (why,)))
    assert all(
        character.isprintable() or character == "\n" for line in text.splitlines() for character in line
    )


@in_each_shell
def test_a_shell_unsets_what_is_to_be_unset(shell: str) -> None:
    assert value_in(shell, Advice((setting(None),))) == "unset"


@in_each_shell
def test_a_value_per_host_is_for_that_host_alone(shell: str) -> None:
    both = Advice((setting("eth0", HERE, "node09"), setting("eth1", "node07")))
    assert value_in(shell, both) == "eth0"
    assert value_in(shell, Advice((setting("eth1", "node07", "*", "[a-z]*", "é"),))) == "before"


@in_each_shell
def test_text_from_elsewhere_cannot_leave_its_comment(shell: str) -> None:
    evil = Advice((setting("eth0", why="x\nexport NCCL_SOCKET_IFNAME=evil\x1b[2J"),), ("note\rexport A=1",))
    assert value_in(shell, evil) == "eth0"


def test_a_name_that_is_no_variable_is_left_out() -> None:
    assert value_in("sh", Advice((setting("1", name="A; exit 1; B"),))) == "before"


def test_no_advice_says_so_and_why() -> None:
    assert render_sh(Advice((), ("one node",))) == "# ncclcheck: nothing to set\n# one node\n"


def test_each_reason_is_given_once() -> None:
    assert render_sh(Advice((setting("a", "n1"), setting("b", "n2")))).count("# ") == 1
