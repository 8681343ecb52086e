"""DeepSpeed's launcher, and what it starts on every node: their command lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.line.deepspeed_line import read_deepspeed
from ncclcheck.launch.line.deepspeed_node_line import read_deepspeed_node
from ncclcheck.launch.line.launch_line import CommandLine, ReadFile


def _read_node_line(
    words: Sequence[str], environ: Mapping[str, str], read: ReadFile, program: str
) -> CommandLine | None:
    del environ, read
    return read_deepspeed_node(words, program)


DEEPSPEED = Launcher(
    name="deepspeed",
    label="DeepSpeed",
    commands={("deepspeed",): read_deepspeed, ("deepspeed.pt",): read_deepspeed, ("ds",): read_deepspeed},
    modules={
        ("deepspeed.launcher.runner",): read_deepspeed,
        ("deepspeed.launcher.launch",): _read_node_line,
    },
)
