"""Open MPI over ssh between the nodes of a lab: a real sshd on each, and mpirun on node1."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tests.lab.namespaces import call
from tests.lab.nodes import Lab, Node
from tests.lab.process import Finished

_SSHD = Path("/usr/sbin/sshd")  # sshd wants to be started by its whole path


def ssh_skip_reason() -> str | None:
    """Why sshd cannot be started here; None where it can."""
    missing = [name for name in (str(_SSHD), "ssh", "ssh-keygen") if not shutil.which(name)]
    return f"{', '.join(missing)} not installed (Debian package openssh-server)" if missing else None


def openmpi_skip_reason() -> str | None:
    """Why mpirun cannot be started over the nodes; None where it can."""
    if not shutil.which("mpirun"):
        return "mpirun not installed (Debian package openmpi-bin)"
    said = call(["mpirun", "--version"])
    return ssh_skip_reason() if "Open MPI" in said else f"mpirun is not Open MPI's: {said.splitlines()[0]}"


class Ssh:
    """An sshd on every node while the block runs, open to a key made for it; `config` lets `ssh -F` in by node name.

    State: the daemons, and `folder` with keys and configuration.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.folder = lab.folder / "ssh"
        self.config = self.folder / "config"
        self._daemons = ExitStack()

    def __enter__(self) -> Ssh:
        try:
            self._write_configuration()
            Path("/run/sshd").mkdir(exist_ok=True)  # compiled into sshd; the package makes it at boot
            for node in self.lab.nodes:
                self._start(node)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._daemons.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write_configuration(self) -> None:
        self.folder.mkdir()
        for name in ("host_key", "user_key"):
            call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)])
        lines = [
            "Host *",
            "User root",
            f"IdentityFile {self.folder}/user_key",
            "IdentitiesOnly yes",
            "BatchMode yes",
            "StrictHostKeyChecking no",
            f"UserKnownHostsFile {self.folder}/known_hosts",
            "LogLevel ERROR",
            "ConnectTimeout 10",
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def _start(self, node: Node) -> None:
        variables = " ".join(f'"{name}={value}"' for name, value in node.environment().items())
        lines = [
            f"ListenAddress {node.address}",
            f"HostKey {self.folder}/host_key",
            f"AuthorizedKeysFile {self.folder}/user_key.pub",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "PermitRootLogin prohibit-password",
            "MaxStartups 100",
            f"SetEnv {variables}",
        ]
        config = self.folder / f"sshd-{node.name}"
        config.write_text("\n".join(lines) + "\n")
        running = self._daemons.enter_context(node.service([str(_SSHD), "-D", "-e", "-f", str(config)]))
        running.wait_for("Server listening on", 10)


class OpenMpi:
    """What mpirun needs while the block runs: ssh to every node and a host file. State: that of its `ssh`."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ssh = Ssh(lab)

    def __enter__(self) -> OpenMpi:
        self.ssh.__enter__()
        hostfile = [f"{node.name} slots=8" for node in self.lab.nodes]
        (self.ssh.folder / "hostfile").write_text("\n".join(hostfile) + "\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.ssh.__exit__(kind, error, where)

    def mpirun(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        ranks_per_node: int = 1,
        slots: Sequence[int] = (),
        options: Sequence[str] = (),
        timeout_s: float = 120,
    ) -> Finished:
        """Run `mpirun OPTIONS ARGV` from node1 with that many ranks on every node; `env` is forwarded to all of them.

        `slots`: ranks on each node, where they differ.

        Its exit code is the first failing rank's; it kills the others then. Useful option: `--tag-output`.
        """
        hostfile = self.ssh.folder / "hostfile"
        if slots:
            hostfile = self.ssh.folder / "uneven"
            lines = [f"{node.name} slots={ranks}" for node, ranks in zip(self.lab.nodes, slots, strict=False)]
            hostfile.write_text("\n".join(lines) + "\n")
        mpirun = ["mpirun", "--allow-run-as-root", "--hostfile", str(hostfile)]
        mpirun += ["--mca", "plm_rsh_agent", f"ssh -F {self.ssh.config}"]
        mpirun += ["--mca", "oob_tcp_if_include", f"{self.lab.subnet}.0/24"]
        mpirun += ["--bind-to", "none"]  # all nodes share this machine's cores
        mpirun += [] if slots else ["-npernode", str(ranks_per_node)]
        for name in env or {}:
            mpirun += ["-x", name]
        return self.lab.nodes[0].run([*mpirun, *options, *argv], env, timeout_s=timeout_s)
