"""The parallel groups that a command's own arguments ask for."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.parallel_sizes import parallel_sizes
from ncclcheck.measure.mesh.groups import order_of

MEGATRON = [
    "torchrun",
    "pretrain_gpt.py",
    "--tensor-model-parallel-size",
    "8",
    "--pipeline-model-parallel-size=2",
]


@pytest.mark.parametrize(
    ("words", "means", "source"),
    [
        (MEGATRON, "pp=2,dp=-1,cp=1,tp=8", "Megatron-LM"),
        ([*MEGATRON, "--use-tp-pp-dp-mapping"], "dp=-1,pp=2,cp=1,tp=8", "Megatron-LM"),
        ([*MEGATRON, "--deepspeed"], "pp=2,dp=-1,cp=1,tp=8", "Megatron-DeepSpeed"),
        (
            [*MEGATRON, "--expert-model-parallel-size", "8", "--expert-tensor-parallel-size", "1"],
            "pp=2,dp=-1,cp=1,tp=8,ep=8@dp+cp+tp",
            "Megatron-LM",
        ),
        (
            [
                "train.py",
                "--parallelism.tensor_parallel_degree=4",
                "--parallelism.pipeline_parallel_degree",
                "2",
            ],
            "pp=2,dp_replicate=1,dp_shard=-1,cp=1,tp=4",
            "torchtitan",
        ),
        (
            ["train.py", "--training.tensor_parallel_degree=4", "--training.data_parallel_shard_degree=8"],
            "pp=1,dp_replicate=1,dp_shard=8,cp=1,tp=4",
            "torchtitan",
        ),
    ],
)
def test_the_frameworks(words: list[str], means: str, source: str) -> None:
    mesh = parallel_sizes(words)
    assert mesh is not None
    assert order_of(mesh) == means
    assert mesh.source.startswith(source)


@pytest.mark.parametrize(
    "words", [["train.py", "--lr", "1"], [], ["--tensor"], ["x", "--parallelism.unknown=3"]]
)
def test_a_command_without_them_has_none(words: list[str]) -> None:
    assert parallel_sizes(words) is None


@pytest.mark.parametrize("value", ["", "eight", "0", "-1", "9" * 30])
def test_a_size_that_is_none_counts_as_one(value: str) -> None:
    mesh = parallel_sizes(["x.py", "--tensor-model-parallel-size", value])
    assert mesh is not None
    assert mesh.dimensions[-1].size == 1
