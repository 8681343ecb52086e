"""Remote shells, which start a command on other nodes and tell it nothing of its place."""

from __future__ import annotations

from ncclcheck.launch.launcher import Launcher

REMOTE_SHELL = Launcher(
    name="remote-shell",
    label="a remote shell",
    remote_starters=("ssh", "pdsh", "clush", "pssh", "parallel-ssh"),
)
