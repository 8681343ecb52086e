"""`watch --isolate`: after a hang or a failure, `ncclcheck isolate` names the bad node of the job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ncclcheck.cli.commands.prefix import Prefixed
from ncclcheck.cli.screen import write_error
from ncclcheck.cli.watching.meeting import flags_of
from ncclcheck.launch.detect import detect
from ncclcheck.model.errors import UsageError
from ncclcheck.timeouts import WATCH_ISOLATE_S


class IsolateCommand(Struct, frozen=True):
    """The words and the environment of `isolate` on this node."""

    words: tuple[str, ...]
    environ: dict[str, str]


_PLACE = ("nnodes", "node_rank", "master_addr", "master_port", "key_file")


def isolate_nodes(option_values: Mapping[str, Any], prefixed: Prefixed, folder: Path) -> None:
    """Test pairs of the job's nodes; node 0 prints on standard error who is bad, and the lines that exclude them.

    Every node's watcher does this, as `isolate` is started on every node. The job's exit code stays what it is.
    """
    command = isolate_command(option_values, prefixed, folder)
    if command is None:
        write_error("watch: --isolate: the job ran on one node, so there is no pair of nodes to test")
        return
    write_error("watch: --isolate: testing pairs of the job's nodes")
    try:
        subprocess.run(
            command.words,
            env=command.environ,
            stdin=subprocess.DEVNULL,
            stdout=2,  # standard output has the job's own
            timeout=WATCH_ISOLATE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        write_error(f"watch: --isolate: the tests did not end: {error}")


def isolate_command(
    option_values: Mapping[str, Any], prefixed: Prefixed, folder: Path
) -> IsolateCommand | None:
    """Return the command line of `isolate` for this node of the job; None where it has one node only."""
    try:
        launch = detect(prefixed.checked_environ, flags_of(option_values), prefixed.line.launch)
    except UsageError:
        return None
    if launch.nnodes == 1:
        return None
    place_options = {name: option_values.get(name) for name in _PLACE}
    environ = dict(prefixed.checked_environ)
    if prefixed.line.launch is not None and launch.rendezvous == "static":
        place = (launch.nnodes, launch.node_rank, launch.master_addr, launch.master_port)
        place_options |= dict(zip(_PLACE, place, strict=False))
    elif prefixed.line.launch is not None:  # no node of it has a rank: isolate meets as torchrun does
        environ |= {
            "PET_NNODES": str(launch.nnodes),
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{launch.master_addr}:{launch.master_port}",
            "PET_RDZV_ID": launch.rendezvous_id,
        }
    options = [
        word
        for name, value in place_options.items()
        if value is not None
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    files = ["--output", str(folder / "isolate.json"), "--output", str(folder / "isolate.txt")]
    return IsolateCommand((sys.executable, "-m", "ncclcheck", "isolate", *options, *files), environ)
