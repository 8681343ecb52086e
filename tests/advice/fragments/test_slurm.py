"""A batch script hands the values on to its tasks; those that differ are chosen where the task runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from ncclcheck.advice.fragments.slurm import render_slurm
from ncclcheck.model.report import Advice
from tests.advice.fragments.settings import EVIL, HERE, any_text, in_each_shell, interface_names, run, setting

PRINT = """printf %s "${NCCL_SOCKET_IFNAME-unset}" """


def in_a_task(shell: str, advice: Advice) -> str:
    """What a child of the batch script has, without the per-node script."""
    return run(shell, f"{render_slurm(advice)}sh -c '{PRINT}'")


def in_a_wrapped_task(shell: str, advice: Advice) -> str:
    """What a command has that is started as the comment says."""
    return run(shell, f"""{render_slurm(advice)}sh -c "$NCCLCHECK_PER_NODE" sh sh -c '{PRINT}'""")


@in_each_shell
@pytest.mark.parametrize("value", EVIL)
def test_a_task_gets_exactly_the_advised_value(shell: str, value: str) -> None:
    assert in_a_task(shell, Advice((setting(value),))) == value


@in_each_shell
@settings(max_examples=20, deadline=None)
@given(name=interface_names, why=any_text)
def test_values_that_differ_are_chosen_by_the_node_of_the_task(shell: str, name: str, why: str) -> None:
    both = Advice((setting(name, HERE, why=why), setting("other", "node07", why=why)))
    assert in_a_task(shell, both) == "before"
    assert in_a_wrapped_task(shell, both) == name
    assert in_a_wrapped_task(shell, Advice((setting(name, "node07", why=why),))) == "before"


def test_unsetting_and_nothing() -> None:
    assert in_a_task("sh", Advice((setting(None),))) == "unset"
    assert in_a_task("sh", Advice((), ("one node",))) == "before"
    assert "# ncclcheck: nothing to set\n# one node\n" in render_slurm(Advice((), ("one node",)))
