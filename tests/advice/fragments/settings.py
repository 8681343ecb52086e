"""Settings to render, names that interfaces can have, and what a real shell makes of a text."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import strategies as st

from ncclcheck.model.report import Setting

HERE = os.uname().nodename
SHELLS = [shell for shell in ("sh", "dash", "bash", "zsh", "ksh", "busybox") if shutil.which(shell)]
EVIL = ["eth0", "=eth0", "^docker,lo", "a b", "it's", "$(exit 3)", "`exit 3`", "", "*", "$HOME", '"']
EVIL += ["\\", "#x", "~", "!!", "a;b", "a&b", "é", "\x1b[2J", "-n", "%s"]

in_each_shell = pytest.mark.parametrize("shell", SHELLS)
# What Linux takes for a name (dev_valid_name): no white space, no slash, up to 15 bytes. Colons are refused too.
interface_names = st.text(
    st.characters(exclude_characters="/\0\t\n\v\f\r\x1c\x1d\x1e\x1f\x85", codec="utf-8").filter(
        lambda character: not character.isspace()
    ),
    min_size=1,
    max_size=15,
)
any_text = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30)


def setting(
    value: str | None, *hosts: str, name: str = "NCCL_SOCKET_IFNAME", why: str = "it is wrong"
) -> Setting:
    """One advised value."""
    return Setting(name, value, hosts, why, "asked", "all 2 connections succeeded")


def run(shell: str, script: str, *arguments: str) -> str:
    """What the script prints in that shell, where NCCL_SOCKET_IFNAME is `before`. It must not complain."""
    command = ["busybox", "sh"] if shell == "busybox" else [shell]
    done = subprocess.run(
        [*command, "-eu", "-c", script, *arguments],
        env={"PATH": os.environ["PATH"], "NCCL_SOCKET_IFNAME": "before", "LC_ALL": "C"},
        capture_output=True,
        timeout=10,
        check=True,
    )
    assert done.stderr == b""
    return done.stdout.decode()
