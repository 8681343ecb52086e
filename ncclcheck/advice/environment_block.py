"""The advice in each format that `ncclcheck env` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from ncclcheck.advice.fragments.docker import render_docker
from ncclcheck.advice.fragments.kubernetes import render_kubernetes
from ncclcheck.advice.fragments.sh import render_sh
from ncclcheck.advice.fragments.slurm import render_slurm
from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.report import Advice

Format: TypeAlias = Literal["sh", "json", "docker", "slurm", "k8s"]


def render(advice: Advice, format_: Format) -> str:
    """Return the text, with a final newline."""
    return _RENDERERS[format_](advice)


def render_json(advice: Advice) -> str:
    """Return the advice as in the report's JSON, with a final newline."""
    return encode_pretty(advice) + "\n"


_RENDERERS: dict[Format, Callable[[Advice], str]] = {
    "sh": render_sh,
    "json": render_json,
    "docker": render_docker,
    "slurm": render_slurm,
    "k8s": render_kubernetes,
}
