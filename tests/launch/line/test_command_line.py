"""Any command line: which launcher it is, behind which wrappers, and what is refused."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.command_line import read_command
from ncclcheck.launch.line.launch_line import CommandLine, Script
from ncclcheck.model.errors import UsageError

TORCHRUN = ["torchrun", "--nnodes=2", "--node-rank=1", "--master-addr=a", "train.py", "--lr", "1"]


def read(words: list[str], **environ: str) -> CommandLine:
    return read_command(words, environ, lambda _: None)


@pytest.mark.parametrize(
    "words",
    [
        TORCHRUN,
        ["/venv/bin/torchrun", *TORCHRUN[1:]],
        ["python", "-m", "torch.distributed.run", *TORCHRUN[1:]],
        ["python3.12", "-u", "-mtorch.distributed.launch", *TORCHRUN[1:]],
        ["python", "/venv/bin/torchrun", *TORCHRUN[1:]],
        ["env", "NCCL_DEBUG=INFO", *TORCHRUN],
        ["nohup", "numactl", "--interleave=all", *TORCHRUN],
        ["uv", "run", *TORCHRUN],
        ["nsys", "profile", "-o", "out", *TORCHRUN],
        ["nsys", "profile", "-t", "cuda,nvtx", "-w", "true", *TORCHRUN],
        ["uv", "run", "--no-sync", "-m", "torch.distributed.run", *TORCHRUN[1:]],
        ["timeout", "-k", "10", "3h", "time", "-p", *TORCHRUN],
        ["my-wrapper", "--quiet", *TORCHRUN],
        ["env", "-u", "NCCL_DEBUG", "-S", " ".join(["A=1", *TORCHRUN])],
        ["bash", "-euo", "pipefail", "-c", " ".join([*TORCHRUN, "2>&1", "|", "tee", "log"])],
        ["sh", "-c", " ".join(["exec", *TORCHRUN])],
        ["fabric", "run", "--num-nodes=2", "--node-rank=1", "--main-address=a", "train.py", "--lr", "1"],
        ["accelerate", "launch", "--num_machines=2", "--machine_rank=1", "--main_process_ip=a", "train.py"],
        ["python", "-m", "accelerate.commands.launch", "--num_machines=2", "--machine_rank=1",
         "--main_process_ip=a", "train.py"],
        ["python", "-m", "accelerate.commands.accelerate_cli", "launch", "--num_machines=2", "--machine_rank=1",
         "--main_process_ip=a", "train.py"],
        ["python", "-m", "lightning.fabric.cli", "train.py", "--num-nodes=2", "--node-rank=1", "--main-address=a"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_two_nodes_of_which_this_is_the_second(words: list[str]) -> None:
    found = read(words)
    assert found.launch is not None
    assert (found.launch.nnodes, found.launch.node_rank, found.launch.master_addr) == (2, 1, "a")
    assert found.script == Script("train.py")


def test_a_variable_set_by_the_line_counts() -> None:
    found = read(["env", "PET_NNODES=2", "PET_MASTER_ADDR=a", "NCCL_DEBUG=INFO", "torchrun", "train.py"])
    assert found.environ["NCCL_DEBUG"] == "INFO"
    assert found.launch is not None
    assert (found.launch.nnodes, found.launch.master_addr) == (2, "a")
    inner = read(["bash", "-c", "PET_NNODES=$N PET_MASTER_ADDR=a torchrun train.py"], N="2")
    assert inner.launch == found.launch


def test_a_variable_taken_away_by_the_line_does_not_count() -> None:
    around = {"PET_NNODES": "2", "NCCL_DEBUG": "INFO"}
    found = read(["env", "-u", "PET_NNODES", "torchrun", "train.py"], **around)
    assert found.launch is not None
    assert (found.launch.nnodes, found.environ) == (1, {"PET_NNODES": None})
    cleared = read(["env", "-i", "A=1", "torchrun", "train.py"], **around)
    assert cleared.environ == {"PET_NNODES": None, "NCCL_DEBUG": None, "A": "1"}


def test_the_script_is_in_the_folder_that_the_line_enters() -> None:
    assert read(["env", "-C", "/job", *TORCHRUN]).script == Script("train.py", folder="/job")


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["python", "train.py", "--launcher", "torchrun"], Script("train.py")),
        (["python", "-m", "pkg.train"], Script("pkg.train", is_module=True)),
        (["./train.py", "torchrun"], Script("./train.py")),
        (["uv", "run", "-m", "pkg.train"], Script("pkg.train", is_module=True)),
        (["bash", "-c", "exec python -u train.py | tee log"], Script("train.py")),
        (["./train", "--framework", "deepspeed", "--epochs", "3"], None),
        (["./launch", "--with", "srun"], None),
        (["./run.sh", "train"], None),
        (["bash", "run.sh"], None),
        (["python", "-c", "print('torchrun')"], None),
        (["sh", "-c", "echo $HOME; python train.py"], None),
    ],
    ids=str,
)
def test_a_plain_command_is_a_process_of_whatever_started_us(words: list[str], script: Script | None) -> None:
    found = read(words)
    assert (found.launch, found.script) == (None, script)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["srun", "-N2", *TORCHRUN], "'srun [its options] ncclcheck preflight -- COMMAND'"),
        (["env", "A=1", "mpirun", "-np", "2", "python", "train.py"], "mpirun starts the other nodes"),
        (["torchrun", "--help"], "starts no job"),
        (
            ["sh", "-c", "cd x && torchrun --nnodes 2 train.py"],
            "put ncclcheck into it, as in \"sh -c '... ncclcheck",
        ),
        (["sh", "-c", "cd x\ntorchrun --nnodes 2 train.py"], "torchrun is started inside sh -c"),
        (
            ["sh", "-c", "python -m torch.distributed.run --nnodes $(nproc) train.py"],
            "torch.distributed.run is started",
        ),
        (["bash", "-c", "srun python train.py"], "srun starts the other nodes"),
        (["bash", "-c", "module load mpi; mpirun -np 2 python train.py"], "mpirun starts the other nodes"),
        (["uv", "run", "mpirun", "-np", "2", "python", "train.py"], "mpirun starts the other nodes"),
        (["ssh", "node2", *TORCHRUN], "ssh starts the other nodes"),
    ],
    ids=str,
)
def test_what_cannot_be_checked_from_here_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        read(words)
    assert sentence in str(told.value)


def test_behind_our_own_watch_is_the_job() -> None:
    behind = read(["python3", "-m", "ncclcheck", "watch", "--patience", "9", "--", *TORCHRUN])
    assert behind == read([*TORCHRUN])
    assert behind.launch is not None
