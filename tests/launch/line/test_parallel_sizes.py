"""The parallel groups that a command's own arguments ask for."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.parallel_sizes import parallel_sizes, titan_file
from ncclcheck.measure.mesh.groups import order_of
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.fact import Missing

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
        (
            ["x.py", "--parallelism.tensor-parallel-degree", "2"],
            "pp=1,dp_replicate=1,dp_shard=-1,cp=1,tp=2",
            "torchtitan",
        ),
        (
            ["x.py", "--model-parallel-size", "2", "--pipe-parallel-size=4"],
            "pp=4,dp=-1,cp=1,tp=2",
            "Megatron-LM",
        ),
        (
            ["x.py", "--model-parallel-size", "2", "--pipe-parallel-size", "0"],
            "pp=1,dp=-1,cp=1,tp=2",
            "Megatron-LM",
        ),
    ],
)
def test_the_frameworks(words: list[str], means: str, source: str) -> None:
    mesh = parallel_sizes(words)
    assert isinstance(mesh, Mesh)
    assert order_of(mesh) == means
    assert mesh.source.startswith(source)


@pytest.mark.parametrize(
    "words", [["train.py", "--lr", "1"], [], ["--tensor"], ["x", "--parallelism.unknown=3"]]
)
def test_a_command_without_them_has_none(words: list[str]) -> None:
    assert parallel_sizes(words) is None


@pytest.mark.parametrize("value", ["", "eight", "0", "-1", "$TP", "9" * 30])
def test_a_size_that_is_none_is_not_taken_for_one(value: str) -> None:
    for words in (["--tensor-model-parallel-size", value], ["--parallelism.tensor_parallel_degree", value]):
        found = parallel_sizes(["x.py", *words])
        assert isinstance(found, Missing)
        assert words[0] in found.detail


def test_sizes_in_a_file_of_megatron_are_not_known() -> None:
    found = parallel_sizes([*MEGATRON, "--yaml-cfg", "model.yaml"])
    assert isinstance(found, Missing)
    assert "model.yaml, which is not read" in found.detail


def test_what_the_file_of_torchtitan_says_counts_where_no_argument_does() -> None:
    words = ["train.py", "--job.config_file=llama.toml", "--parallelism.tensor-parallel-degree", "2"]
    assert titan_file(words) == "llama.toml"
    of_file = {
        "--parallelism.tensor_parallel_degree": "8",
        "--parallelism.pipeline_parallel_degree": "4",
        "--parallelism.data_parallel_shard_degree": "-1",
    }
    mesh = parallel_sizes(words, of_file)
    assert isinstance(mesh, Mesh)
    assert order_of(mesh) == "pp=4,dp_replicate=1,dp_shard=-1,cp=1,tp=2"
