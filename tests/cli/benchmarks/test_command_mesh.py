"""The parallel groups of the command behind `--`, with the file that torchtitan reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclcheck.cli.benchmarks.command_mesh import command_mesh
from ncclcheck.measure.mesh.groups import order_of
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.fact import Missing

LLAMA = """
[training]
seq_len = 8192
[parallelism]
tensor_parallel_degree = 8
data_parallel_shard_degree = -1
enable_async_tensor_parallel = false
"""


def _words(file: Path) -> list[str]:
    return ["torchrun", "train.py", "--job.config_file", str(file)]


def test_the_file_of_torchtitan_is_read_and_arguments_win(tmp_path: Path) -> None:
    (tmp_path / "llama.toml").write_text(LLAMA)
    mesh = command_mesh([*_words(tmp_path / "llama.toml"), "--parallelism.pipeline_parallel_degree", "2"])
    assert isinstance(mesh, Mesh)
    assert order_of(mesh) == "pp=2,dp_replicate=1,dp_shard=-1,cp=1,tp=8"


@pytest.mark.parametrize("text", ["[parallelism", "[parallelism]\ntensor_parallel_degree = 'two'", None])
def test_a_file_that_tells_nothing_leaves_the_groups_unknown(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "llama.toml").write_text(text)
    assert isinstance(command_mesh(_words(tmp_path / "llama.toml")), Missing)


def test_a_file_without_parallel_sizes_and_a_command_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "llama.toml").write_text("[training]\nseq_len = 1")
    assert command_mesh(_words(tmp_path / "llama.toml")) is None
    assert command_mesh(["train.py"]) is None
