"""Horovod's launcher, which starts mpirun or its own processes on all nodes."""

from __future__ import annotations

from ncclcheck.launch.launcher import Launcher

HOROVOD = Launcher(name="horovod", label="Horovod", remote_starters=("horovodrun",))
