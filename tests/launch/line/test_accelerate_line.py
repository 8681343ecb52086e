"""`accelerate launch`: its flags, its config file, and the torchrun or DeepSpeed behind it."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.launch.line.accelerate_line import FLAGS, read_accelerate
from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, Script
from ncclcheck.model.errors import UsageError

NODES = ["--num_machines", "2", "--machine-rank=1", "--main_process_ip", "head", "--num_processes=16"]
CONFIG = """
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
num_machines: 2
num_processes: 16
machine_rank: 0
main_process_ip: 10.0.0.1
main_process_port: 1234
rdzv_backend: static
same_network: true
"""


def read(words: list[str], files: dict[str, str] | None = None, **environ: str) -> CommandLine:
    found = read_accelerate(words, environ, (files or {}).get)
    assert found is not None
    return found


def line(words: list[str], files: dict[str, str] | None = None, **environ: str) -> LaunchLine:
    found = read(words, files, **environ)
    assert found.launch is not None
    assert found.script == Script("train.py")
    return found.launch


def test_nodes_rank_and_address() -> None:
    told = line(["--multi_gpu", *NODES, "--mixed-precision", "bf16", "train.py", "--num_machines", "9"])
    assert (told.nnodes, told.node_rank, told.master_addr, told.master_port) == (2, 1, "head", 29500)
    assert (told.rendezvous, told.nproc_per_node) == ("static", 8)


def test_c10d() -> None:
    told = line([*NODES, "--rdzv_backend=c10d", "--main_process_port", "5", "train.py"])
    assert (told.rendezvous, told.node_rank, told.master_port) == ("c10d", None, 5)


def test_the_config_file_counts_where_the_line_is_silent() -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    told = line(["--config_file", "c.yaml", "--machine_rank", "1", "train.py"], {"c.yaml": CONFIG})
    assert (told.nnodes, told.node_rank, told.master_addr, told.master_port) == (2, 1, "10.0.0.1", 1234)
    assert told.nproc_per_node == 8


def test_the_rendezvous_of_a_config_file_never_counts() -> None:
    """As in accelerate: the option's default is "static", and that is taken for what the line says."""
    config = '{"num_machines": 2, "machine_rank": 1, "main_process_ip": "a", "rdzv_backend": "c10d"}'
    told = line(["--config_file", "c.json", "train.py"], {"c.json": config})
    assert (told.rendezvous, told.node_rank) == ("static", 1)
    both = line(["--config_file", "c.json", "--rdzv_backend", "c10d", "train.py"], {"c.json": config})
    assert both.rendezvous == "c10d"


def test_the_default_config_file_is_where_accelerate_looks_for_it() -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    file = {"/hf/accelerate/default_config.yaml": CONFIG}
    assert line(["train.py"], file, HF_HOME="/hf").nnodes == 2
    assert line(["--cpu", "train.py"], file, HF_HOME="/hf").nnodes == 1
    assert (
        line(
            ["train.py"], {"~/.cache/huggingface/accelerate/default_config.json": '{"num_machines": 1}'}
        ).nnodes
        == 1
    )


def test_deepspeed_reads_its_hostfile_and_starts_the_nodes() -> None:
    files = {"h": "a slots=8\nb slots=8\n"}
    told = line([*NODES, "--use_deepspeed", "--deepspeed_hostfile=h", "train.py"], files)
    assert (told.nnodes, told.remote_hosts) == (2, ("a", "b"))
    alone = [
        *NODES,
        "--use_deepspeed",
        "--deepspeed_hostfile=h",
        "--deepspeed_multinode_launcher=nossh",
        "train.py",
    ]
    assert (line(alone, files).remote_hosts, line(alone, files).node_rank) == ((), 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--num_machines=2", "train.py"], "needs --machine_rank"),
        (["--num_machines=2", "--machine_rank=0", "train.py"], "needs --main_process_ip"),
        (["--num_machines=x", "train.py"], "--num_machines 'x'"),
        (["--config_file=nope.yaml", "train.py"], "there is no such file"),
        (["--config_file=c.json", "train.py"], "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        read(words, {"c.json": "{"})
    assert sentence in str(told.value)


def test_the_table_has_every_flag_of_the_installed_accelerate() -> None:
    launch: Any = pytest.importorskip("accelerate.commands.launch", reason="accelerate is not installed")
    flags = {name for option in FLAGS for name in option.names}
    for action in launch.launch_command_parser()._actions:
        for name in action.option_strings:
            if action.nargs == 0 and name not in ("-h", "--help"):
                assert name in flags
            elif action.nargs != 0:
                assert name not in flags
