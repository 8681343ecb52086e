"""A bare network namespace, in which a test evaluates a facts function as a node would."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_ROOT = Path(__file__).parents[2]


class Namespace:
    """A network namespace with nothing but a `lo` that is down; deleted at the end."""

    def __init__(self) -> None:
        self.name = f"ncclfacts{secrets.token_hex(3)}"

    def __enter__(self) -> Namespace:
        _call("ip", "netns", "add", self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _call("ip", "netns", "del", self.name)
        shutil.rmtree(Path("/etc/netns", self.name), ignore_errors=True)

    def ip(self, *lines: str) -> None:
        """Run `ip LINE` for each line inside."""
        for line in lines:
            _call("ip", "-netns", self.name, *line.split())

    def etc(self, name: str, text: str) -> None:
        """Let /etc/NAME have this text inside."""
        folder = Path("/etc/netns", self.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def evaluate(self, module: str, expression: str, setup: str = "", **environment: str) -> Any:
        """The JSON of an expression over the names of `ncclcheck.facts.MODULE`, evaluated inside."""
        program = (
            "import os, socket, sys\n"
            f"from ncclcheck.facts.{module} import *\n"
            "from ncclcheck.model.codec import encode\n"
            f"{setup}\n"
            f"sys.stdout.buffer.write(encode({expression}))\n"
        )
        inside = [
            "ip",
            "netns",
            "exec",
            self.name,
            "env",
            *(f"{key}={text}" for key, text in environment.items()),
        ]
        return json.loads(_call(*inside, sys.executable, "-c", program))


def _call(*argv: str) -> str:
    done = subprocess.run(argv, cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout
