"""Fixes with a host name in their command."""

from __future__ import annotations

import pytest

from ncclcheck.checks.fixes import compare_paths, leave_out


def test_the_commands_name_the_host() -> None:
    assert leave_out("node03").commands == ("srun --exclude=node03 ...",)
    assert compare_paths("node04").commands == ("tracepath node04",)


@pytest.mark.parametrize("host", ["node[1-9]", "-w", "a b", "$(id)", "node1,node2"])
def test_a_name_that_means_something_else_in_a_command_gets_none(host: str) -> None:
    assert leave_out(host).commands == ()
    assert compare_paths(host).commands == ()
