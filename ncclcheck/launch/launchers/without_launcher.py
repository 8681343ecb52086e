"""What says a process's place where no launcher started it: the user's flags, the command after `--`, or nothing."""

from __future__ import annotations

from ncclcheck.launch.launcher import Launcher

FLAGS = Launcher(name="flags", label="nodes given on the command line")
LAUNCH_LINE = Launcher(name="launch-line", label="before the launcher")
NONE = Launcher(name="none", label="no launcher")
