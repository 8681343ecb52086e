"""ssh to the nodes of a lab as a site has it: an sshd on each node with a host key of its own, and a user's files."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tests.lab.launched import job_environment
from tests.lab.namespaces import call
from tests.lab.nodes import Lab, Node
from tests.lab.openmpi import ssh_skip_reason
from tests.lab.process import Running

_SSHD = "/usr/sbin/sshd"
__all__ = ["Site", "ssh_skip_reason"]


class Site:
    """An sshd on every node while the block runs, and a user who may log in everywhere and knows all host keys.

    State: the daemons, `config` for `ssh -F`, `known_hosts`, and what was changed of them. Nobody's own files are read.
    """

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.folder = lab.folder / "site"
        self.config = self.folder / "config"
        self.known_hosts = self.folder / "known_hosts"
        self._daemons = ExitStack()
        self.running: dict[str, Running] = {}

    def __enter__(self) -> Site:
        self.folder.mkdir()
        Path("/run/sshd").mkdir(exist_ok=True)  # compiled into sshd; the package makes it at boot
        self.make_key("user_key")
        try:
            for node in self.lab.nodes:
                self.make_key(f"host-{node.name}")
                self.start(node)
        except BaseException:
            self._daemons.close()
            raise
        self.know(*self.lab.nodes)
        lines = [
            "Host *",
            "User root",
            f"IdentityFile {self.folder}/user_key",
            "IdentitiesOnly yes",
            "IdentityAgent none",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile /dev/null",
        ]
        self.config.write_text("\n".join(lines) + "\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._daemons.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def ssh(self) -> str:
        """For `--ssh`: the user's configuration, by name of file."""
        return f"ssh -F {self.config}"

    def make_key(self, name: str) -> None:
        """A new key pair `name` and `name.pub` in the folder."""
        (self.folder / name).unlink(missing_ok=True)
        call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)])

    def know(self, *nodes: Node) -> None:
        """The user knows the host keys of these nodes, and no others."""
        lines = [f"{node.name} {(self.folder / f'host-{node.name}.pub').read_text()}" for node in nodes]
        self.known_hosts.write_text("".join(lines))

    def start(self, node: Node, *options: str) -> None:
        """An sshd on the node, with further lines in its configuration; sessions get the node's environment."""
        own = node.environment(job_environment())
        variables = " ".join(f'"{name}={value}"' for name, value in own.items())
        lines = [
            *options,  # of several lines that set the same, sshd takes the first
            f"ListenAddress {node.address}",
            f"HostKey {self.folder}/host-{node.name}",
            f"AuthorizedKeysFile {self.folder}/user_key.pub",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "MaxStartups 100",
            f"SetEnv {variables}",
        ]
        config = self.folder / f"sshd-{node.name}"
        config.write_text("\n".join(lines) + "\n")
        running = self._daemons.enter_context(node.service([_SSHD, "-D", "-e", "-f", str(config)]))
        running.wait_for("Server listening on", 10)
        self.running[node.name] = running

    def restart(self, node: Node, *options: str) -> None:
        """The node's sshd again, with further lines in its configuration."""
        self.running[node.name].stop()
        self.start(node, *options)

    def force(self, node: Node, script: str) -> None:
        """Whatever is asked of the node's sshd, it runs this script; what was asked is in SSH_ORIGINAL_COMMAND."""
        file = self.folder / f"force-{node.name}"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        self.restart(node, f"ForceCommand {file}")
