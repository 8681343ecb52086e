"""A real Slurm cluster over the nodes of a lab: munged and slurmctld on the switch, slurmd on every node."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

from tests.lab.nodes import Lab
from tests.lab.process import Finished, Running

_NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
# /sys of a namespace is its own, without cgroups: slurmd gets an empty folder for them
_SLURMD = 'mount -t tmpfs tmpfs /sys/fs/cgroup && exec slurmd -D -f "$1" -N "$2"'


def slurm_skip_reason() -> str | None:
    """Why Slurm cannot be started here; None where it can."""
    missing = [name for name in _NEEDED if not shutil.which(name)]
    return f"{', '.join(missing)} not installed (Debian packages slurm-wlm munge)" if missing else None


class Slurm:
    """A Slurm cluster while the block runs. State: its daemons, and `folder` with all their files.

    `further`: lines of slurm.conf beside those that every cluster here has.
    """

    def __init__(self, lab: Lab, further: Sequence[str] = ()) -> None:
        self.lab = lab
        self._further = tuple(further)
        self.folder = lab.folder / "slurm"
        self._daemons = ExitStack()
        self._logs: list[Running] = []

    @property
    def env(self) -> dict[str, str]:
        """What makes Slurm's commands on a node speak to this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def __enter__(self) -> Slurm:
        try:
            self._write_configuration()
            self._start()
            self._wait_until_idle(60)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._daemons.close()
        self._logs.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def srun(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        options: Sequence[str] = (),
        timeout_s: float = 120,
    ) -> Finished:
        """Run `srun -N<nodes> -n<nodes> OPTIONS ARGV` on node1. srun's exit code is the greatest of the tasks'.

        Useful options: `--label` (each line begins with its task), `--output=FILE-%t`, `--ntasks-per-node=2`, `-n8`.
        """
        count = str(len(self.lab.nodes))
        command = ["srun", "-N", count, "-n", count, "--kill-on-bad-exit=0", *options, *argv]
        return self.lab.nodes[0].run(command, {**self.env, **(env or {})}, timeout_s=timeout_s)

    def _write_configuration(self) -> None:
        for name in ("munge", "state", "spool", "log"):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge" / "key"
        key.touch(0o400)
        key.write_bytes(os.urandom(1024))
        nodes = [
            f"NodeName={node.name} NodeAddr={node.address} CPUs=8 State=UNKNOWN" for node in self.lab.nodes
        ]
        names = ",".join(node.name for node in self.lab.nodes)
        lines = [
            "ClusterName=lab",
            f"SlurmctldHost={self.lab.switch.name}({self.lab.switch.address})",
            "SlurmUser=root",
            "AuthType=auth/munge",
            f"AuthInfo=socket={self.folder}/munge/socket",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "MpiDefault=none",
            "SlurmdParameters=config_overrides",  # eight CPUs, whatever this machine has
            "ReturnToService=2",
            "SlurmdTimeout=30",
            "KillWait=2",
            f"StateSaveLocation={self.folder}/state",
            f"SlurmctldPidFile={self.folder}/slurmctld.pid",
            f"SlurmdPidFile={self.folder}/slurmd-%n.pid",
            f"SlurmdSpoolDir={self.folder}/spool/%n",
            f"SlurmctldLogFile={self.folder}/log/slurmctld",
            f"SlurmdLogFile={self.folder}/log/%n",
            *self._further,
            *nodes,
            f"PartitionName=lab Nodes={names} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8",
        ]
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=yes\n")

    def _start(self) -> None:
        folder, conf = self.folder / "munge", str(self.folder / "slurm.conf")
        munged = [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={folder}/key",
            f"--socket={folder}/socket",
        ]
        munged += [f"--pid-file={folder}/pid", f"--log-file={folder}/log", f"--seed-file={folder}/seed"]
        switch = self.lab.switch
        self._logs.append(self._daemons.enter_context(switch.service(munged)))
        self._logs.append(
            self._daemons.enter_context(switch.service(["slurmctld", "-D", "-f", conf], self.env))
        )
        for node in self.lab.nodes:
            slurmd = ["sh", "-c", _SLURMD, "sh", conf, node.name]
            self._logs.append(self._daemons.enter_context(node.service(slurmd, self.env)))

    def _wait_until_idle(self, timeout_s: float) -> None:
        """Return when every node is ready for a job. Raises AssertionError with the daemons' words if one is not."""
        deadline = time.monotonic() + timeout_s
        sinfo = ["sinfo", "--noheader", "--states=idle", "--format=%D"]
        while True:
            answer = self.lab.nodes[0].run(sinfo, self.env, timeout_s=15)
            if answer.stdout.split() == [str(len(self.lab.nodes))]:
                return
            dead = [running for running in self._logs if not running.alive]
            if dead or time.monotonic() > deadline:
                words = "".join(
                    f"{running.argv[-3:]}: {running.stderr[-2000:]}\n" for running in dead or self._logs
                )
                raise AssertionError(f"Slurm's nodes are not idle: {answer}\n{words}")
            time.sleep(0.1)
