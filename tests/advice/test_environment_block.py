"""The block can be evaluated by a real sh, and nothing in it is executed that should not be."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ncclcheck.advice.environment_block import render_json, render_sh
from ncclcheck.model.report import Advice, Setting

HERE = os.uname().nodename


def setting(
    value: str | None, *hosts: str, name: str = "NCCL_SOCKET_IFNAME", why: str = "it is wrong"
) -> Setting:
    return Setting(name, value, hosts, why, "asked", "all 2 connections succeeded")


def value_in_sh(advice: Advice) -> str:
    script = render_sh(advice) + 'printf %s "${NCCL_SOCKET_IFNAME-unset}"\n'
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        env={"PATH": os.environ["PATH"], "NCCL_SOCKET_IFNAME": "before"},
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "value", ["eth0", "=eth0", "^docker,lo", "a b", "it's", "$(touch /tmp/x)", "`id`", "", "a\nb", "*"]
)
def test_sh_gets_exactly_the_advised_value(value: str) -> None:
    assert value_in_sh(Advice((setting(value),))) == value


def test_sh_unsets_what_is_to_be_unset() -> None:
    assert value_in_sh(Advice((setting(None),))) == "unset"


def test_a_value_per_host_is_for_that_host_alone() -> None:
    both = Advice((setting("eth0", HERE, "node09"), setting("eth1", "node07")))
    assert value_in_sh(both) == "eth0"
    assert value_in_sh(Advice((setting("eth1", "node07", "*"),))) == "before"


def test_text_from_elsewhere_cannot_leave_its_comment() -> None:
    evil = Advice((setting("eth0", why="x\nexport NCCL_SOCKET_IFNAME=evil\x1b[2J"),), ("note\rexport A=1",))
    assert value_in_sh(evil) == "eth0"
    assert "\x1b" not in render_sh(evil)
    assert "\r" not in render_sh(evil)


def test_a_name_that_is_no_variable_is_left_out() -> None:
    assert value_in_sh(Advice((setting("1", name="A; exit 1; B"),))) == "before"


def test_no_advice_says_so_and_why() -> None:
    assert render_sh(Advice((), ("one node",))) == "# ncclcheck: nothing to set\n# one node\n"


def test_each_reason_is_given_once() -> None:
    assert render_sh(Advice((setting("a", "n1"), setting("b", "n2")))).count("# ") == 1


def test_json_has_null_for_unset() -> None:
    document = json.loads(render_json(Advice((setting(None),))))
    assert document["env"][0]["value"] is None
    assert document["env"][0]["hosts"] == []
