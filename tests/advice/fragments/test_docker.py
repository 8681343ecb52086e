"""The file gives docker exactly the advised values, by docker's own rules for such a file."""

from __future__ import annotations

import shlex

from hypothesis import given

from ncclcheck.advice.fragments.docker import render_docker
from ncclcheck.model.report import Advice
from tests.advice.fragments.settings import any_text, interface_names, setting


def as_docker_reads(text: str) -> dict[str, str]:
    """docker/cli opts/file.go: leading white space goes, # lines and empty ones are skipped, the rest is NAME=VALUE."""
    lines = [line.lstrip(" \t") for line in text.split("\n")]
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


@given(interface_names, any_text)
def test_docker_gets_exactly_the_advised_value(name: str, why: str) -> None:
    assert as_docker_reads(render_docker(Advice((setting(name, why=why),), (why,)))) == {
        "NCCL_SOCKET_IFNAME": name
    }


def test_the_same_stands_there_as_arguments() -> None:
    text = render_docker(Advice((setting("=eth0"), setting("it's", name="A"))))
    assert shlex.split(text.splitlines()[-1])[-4:] == ["--env", "NCCL_SOCKET_IFNAME==eth0", "--env", "A=it's"]


def test_what_such_a_file_cannot_say_is_a_comment() -> None:
    text = render_docker(
        Advice((setting(None), setting("eth1", "node07", name="A"), setting("a\nNCCL_NET=x", name="B")))
    )
    assert as_docker_reads(text) == {}
    assert "NCCL_SOCKET_IFNAME is to be unset: do not pass it" in text
    assert "only on node07: A='eth1'; one file cannot choose by host" in text
    assert "B: its value has a line break" in text


def test_no_advice_says_so_and_why() -> None:
    assert render_docker(Advice((), ("one node",))).splitlines()[1:] == [
        "# ncclcheck: nothing to set",
        "# one node",
    ]
