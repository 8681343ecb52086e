"""Hugging Face Accelerate, which starts torchrun or DeepSpeed: its command line."""

from __future__ import annotations

from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.line.accelerate_line import read_accelerate

ACCELERATE = Launcher(
    name="accelerate",
    label="Accelerate",
    commands={("accelerate", "launch"): read_accelerate, ("accelerate-launch",): read_accelerate},
    modules={
        ("accelerate.commands.launch",): read_accelerate,
        ("accelerate.commands.accelerate_cli", "launch"): read_accelerate,
    },
)
