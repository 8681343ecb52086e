"""The parallel groups that a training command's own arguments ask for: Megatron-LM, torchtitan, Megatron-DeepSpeed."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.model.benchmarks.mesh import Mesh, MeshDimension

_TP, _PP = "--tensor-model-parallel-size", "--pipeline-model-parallel-size"
_MEGATRON = (
    _TP,
    _PP,
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
_TITAN_SECTIONS = ("parallelism", "training", "experimental")
_MOST = 1_000_000


def parallel_sizes(words: Sequence[str]) -> Mesh | None:
    """Return the mesh of the command's arguments; None where they name no parallel sizes."""
    option_values = _values(words)
    return _megatron(option_values, words) or _titan(option_values)


def _values(words: Sequence[str]) -> dict[str, str]:
    """Return the value of each `--name value` and `--name=value`; of one that stands twice, the last."""
    values: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            values[name] = value if has_value else following
    return values


def _number(option_values: dict[str, str], *names: str) -> int:
    for name in names:
        text = option_values.get(name, "")
        if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST:
            return int(text[:9])
    return 1


def _megatron(option_values: dict[str, str], words: Sequence[str]) -> Mesh | None:
    """Read Megatron-LM's arguments (megatron/training/arguments.py); its order is tp-cp-ep-dp-pp.

    With --use-tp-pp-dp-mapping it is tp-cp-ep-pp-dp. Of Megatron-DeepSpeed the data is inside the pipeline, and the
    model inside the data (deepspeed/runtime/pipe/topology.py, PipeModelDataParallelTopology), which is the same order.
    """
    if not any(name in option_values for name in _MEGATRON):
        return None
    sizes = [
        MeshDimension("pp", _number(option_values, _PP)),
        MeshDimension("dp", 0),
        MeshDimension("cp", _number(option_values, "--context-parallel-size")),
        MeshDimension("tp", _number(option_values, _TP)),
    ]
    if "--use-tp-pp-dp-mapping" in words:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    expert = _number(option_values, "--expert-model-parallel-size")
    tensor = _number(option_values, "--expert-tensor-parallel-size", _TP)
    overlaid = (MeshDimension("ep", expert, ("dp", "cp", "tp")),) if expert > 1 and tensor == 1 else ()
    source = "Megatron-DeepSpeed's arguments" if "--deepspeed" in words else "Megatron-LM's arguments"
    return Mesh(tuple(sizes), overlaid, source)


def _titan(option_values: dict[str, str]) -> Mesh | None:
    def size(name: str) -> int:
        return _number(option_values, *(f"--{section}.{name}" for section in _TITAN_SECTIONS))

    names = [f"--{section}.{name}" for section in _TITAN_SECTIONS for name in _TITAN]
    if not any(name in option_values for name in names):
        return None
    shard = [option_values.get(f"--{section}.data_parallel_shard_degree", "") for section in _TITAN_SECTIONS]
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
