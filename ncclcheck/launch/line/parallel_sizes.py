"""The parallel groups that a training command's own arguments ask for: Megatron-LM, torchtitan, Megatron-DeepSpeed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension
from ncclcheck.model.fact import Missing

_TP, _PP = "--tensor-model-parallel-size", "--pipeline-model-parallel-size"
# Megatron-LM before 2021, and the examples of DeepSpeed
_OLD_TP, _OLD_PP = "--model-parallel-size", "--pipe-parallel-size"
_MEGATRON = (
    _TP,
    _PP,
    _OLD_TP,
    _OLD_PP,
    "--context-parallel-size",
    "--expert-model-parallel-size",
    "--expert-tensor-parallel-size",
)
# torchtitan/config/job_config.py, Parallelism; [training] and [experimental] before 2025
_TITAN = {
    "pipeline_parallel_degree": "pp",
    "data_parallel_replicate_degree": "dp_replicate",
    "data_parallel_shard_degree": "dp_shard",
    "context_parallel_degree": "cp",
    "tensor_parallel_degree": "tp",
    "expert_parallel_degree": "ep",
}
TITAN_SECTIONS = ("parallelism", "training", "experimental")
_TITAN_FILE = ("--job.config_file", "--job.config-file")
_MEGATRON_FILE = "--yaml-cfg"  # with it Megatron-LM reads nothing else
_MOST = 1_000_000


class _NoSizeError(Exception):
    """A word that should be a size."""


def parallel_sizes(words: Sequence[str], of_file: Mapping[str, str] | None = None) -> Mesh | Missing | None:
    """Return the mesh of the command's arguments; None where they name no parallel sizes.

    Missing where they say that there are some, and not how many. `of_file`: what the file of `titan_file` sets, by
    `--section.name`; the arguments win.
    """
    option_values = _values(words)
    if _MEGATRON_FILE in option_values:
        return _not_read(f"{_MEGATRON_FILE} {option_values[_MEGATRON_FILE]}, which is not read")
    try:
        return _megatron(option_values, words) or _titan({**(of_file or {}), **option_values})
    except _NoSizeError as error:
        return _not_read(f"{error}, which is no number of ranks")


def titan_file(words: Sequence[str]) -> str | None:
    """Return the file from which torchtitan reads what its arguments do not say; None without one."""
    option_values = _values(words)
    return next((option_values[name] for name in _TITAN_FILE if name in option_values), None)


def _not_read(what: str) -> Missing:
    return Missing("unsupported", f"the parallel sizes come from {what}: give --mesh")


def _values(words: Sequence[str]) -> dict[str, str]:
    """Return the value of each `--name value` and `--name=value`; of one that stands twice, the last."""
    values: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            values[name] = value if has_value else following
    return values


def _number(option_values: Mapping[str, str], *names: str) -> int:
    """Return the first of these sizes that is given, else 1. Raises _NoSizeError."""
    name = next((name for name in names if name in option_values), None)
    if name is None:
        return 1
    text = option_values[name]
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST):
        raise _NoSizeError(f"{name} {text!r}")
    return int(text[:9])


def _megatron(option_values: Mapping[str, str], words: Sequence[str]) -> Mesh | None:
    """Read Megatron-LM's arguments (megatron/training/arguments.py); its order is tp-cp-ep-dp-pp.

    With --use-tp-pp-dp-mapping it is tp-cp-ep-pp-dp. Of Megatron-DeepSpeed the data is inside the pipeline, and the
    model inside the data (deepspeed/runtime/pipe/topology.py, PipeModelDataParallelTopology), which is the same order.
    """
    if not any(name in option_values for name in _MEGATRON):
        return None
    sizes = [
        MeshDimension("pp", 1 if option_values.get(_OLD_PP) == "0" else _number(option_values, _PP, _OLD_PP)),
        MeshDimension("dp", 0),
        MeshDimension("cp", _number(option_values, "--context-parallel-size")),
        MeshDimension("tp", _number(option_values, _TP, _OLD_TP)),
    ]
    if "--use-tp-pp-dp-mapping" in words:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    expert = _number(option_values, "--expert-model-parallel-size")
    tensor = _number(option_values, "--expert-tensor-parallel-size", _TP, _OLD_TP)
    overlaid = (MeshDimension("ep", expert, ("dp", "cp", "tp")),) if expert > 1 and tensor == 1 else ()
    source = "Megatron-DeepSpeed's arguments" if "--deepspeed" in words else "Megatron-LM's arguments"
    return Mesh(tuple(sizes), overlaid, source)


def _titan(words: Mapping[str, str]) -> Mesh | None:
    option_values = {
        name.replace("-", "_").replace("__", "--", 1): value for name, value in words.items()
    }  # tyro takes both

    def size(name: str) -> int:
        return _number(option_values, *(f"--{section}.{name}" for section in TITAN_SECTIONS))

    names = [f"--{section}.{name}" for section in TITAN_SECTIONS for name in _TITAN]
    if not any(name in option_values for name in names):
        return None
    shard = [option_values.get(f"--{section}.data_parallel_shard_degree", "") for section in TITAN_SECTIONS]
    dimensions = tuple(
        MeshDimension(
            name, 0 if name == "dp_shard" and not any(text.isdigit() for text in shard) else size(option)
        )
        for option, name in _TITAN.items()
        if name != "ep"
    )
    expert = size("expert_parallel_degree")
    overlaid = (MeshDimension("ep", expert, ("dp_shard", "cp", "tp")),) if expert > 1 else ()
    return Mesh(dimensions, overlaid, "torchtitan's arguments")
