"""`python -m tests.lab.fork_server CONTROL_FD`: start Python programs of lab nodes as forks of one process.

Most of what a program of a node costs is `import torch`. This process has imported it, and ncclcheck, once. Each
request on the control socket becomes a child that enters the node's namespaces and then does what a new interpreter
would do (tests/lab/fork_child.py). What remains: all children share one seed of hashes, and have every module loaded.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import tempfile
from contextlib import suppress
from typing import Any

from tests.lab import fork_workers
from tests.lab.fork_child import enter, run, show, take_descriptors

_CHILD_MODULES = ("__main__", "_child")  # programs of their own, which nothing imports


def main() -> None:
    """Serve until the control socket closes. Each child of a request returns from here as well, and runs it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.collect()
    gc.freeze()  # the children would copy every page that a collection touches
    control.send(b"ready")
    request = _serve(control)
    if request is not None:
        argv = fork_workers.begin() if request["argv"][3:4] in (["bench"], ["run"]) else None
        run(argv or request["argv"])


def _import_all() -> None:
    import ncclcheck
    from ncclcheck.exchange.store.tcp import load_torch

    load_torch()  # as a command does it: with the log level that torch reads at its import
    for module in pkgutil.walk_packages(ncclcheck.__path__, "ncclcheck."):
        if not module.name.endswith(_CHILD_MODULES):
            importlib.import_module(module.name)
    tempfile.tempdir = None


def _serve(control: socket.socket) -> dict[str, Any] | None:
    """Fork for every request. Return the request in the child, and None at the end of the socket."""
    children: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, descriptor that wants its end)
    while True:
        for ready in select.select([control.fileno(), *children], [], [])[0]:
            if ready != control.fileno():
                pid, report = children.pop(ready)
                _report(report, os.waitpid(pid, 0)[1])
                os.close(ready)
                continue
            message, descriptors = fork_workers.receive(control)
            if not message:
                return None
            request: dict[str, Any] = json.loads(message)
            pid = os.fork()
            if pid == 0:
                control.detach()
                _become(request, descriptors)
                return request
            pidfd = os.pidfd_open(pid)
            children[pidfd] = pid, descriptors[0]
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            socket.send_fds(control, [str(pid).encode()], [pidfd])


def _report(descriptor: int, status: int) -> None:
    with suppress(BrokenPipeError):  # nobody wants to know any more
        os.write(descriptor, status.to_bytes(4, "little"))
    os.close(descriptor)


# in the child


def _become(request: dict[str, Any], descriptors: list[int]) -> None:
    """Take on all that a new process of the node would have."""
    os.setsid()
    take_descriptors(descriptors[1:], [0, 1, 2, *request["pass_fds"]])
    enter(request["namespace"], request["name"], request["shm"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    show(request["argv"], request["env"])


if __name__ == "__main__":
    main()
