"""Lightning Fabric, which starts torchrun: its command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.line.fabric_line import read_fabric
from ncclcheck.launch.line.launch_line import CommandLine, ReadFile


def _read_line(
    words: Sequence[str], environ: Mapping[str, str], read: ReadFile, program: str
) -> CommandLine | None:
    del read
    return read_fabric(words, environ, program)


FABRIC = Launcher(
    name="fabric",
    label="Lightning Fabric",
    commands={("fabric", "run"): _read_line, ("lightning", "run"): _read_line},
    modules={
        ("lightning.fabric.cli",): _read_line,
        ("lightning_fabric.cli",): _read_line,
    },  # main is `run` itself
)
