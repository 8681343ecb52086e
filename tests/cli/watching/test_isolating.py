"""The command line of `isolate` on a node of a watched job, read by its own parser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ncclcheck.cli.commands.prefix import read_prefixed
from ncclcheck.cli.main import command
from ncclcheck.cli.watching.isolating import IsolateCommand, isolate_command
from ncclcheck.launch.detect import detect
from ncclcheck.launch.flags import LaunchFlags

FOLDER = Path("/kept")


def _command(
    words: Sequence[str], environ: dict[str, str] | None = None, **given: object
) -> IsolateCommand | None:
    prefixed = read_prefixed(["env", *words], {"PATH": os.environ["PATH"], **(environ or {})})
    return isolate_command(given, prefixed, FOLDER)


def _options(found: IsolateCommand) -> dict[str, object]:
    assert found.words[1:4] == ("-m", "ncclcheck", "isolate")
    top = command.make_context("ncclcheck", ["isolate"], resilient_parsing=True)
    return command.commands["isolate"].make_context("isolate", list(found.words[4:]), parent=top).params


def test_the_place_of_the_node_is_that_of_the_job_s_own_command_line() -> None:
    found = _command(
        [
            "torchrun",
            "--nnodes",
            "4",
            "--node-rank",
            "2",
            "--master-addr",
            "node01",
            "--master-port",
            "29501",
            "t.py",
        ]
    )
    assert found is not None
    options = _options(found)
    place = [options[name] for name in ("nnodes", "node_rank", "master_addr", "master_port")]
    assert place == [4, 2, "node01", 29501]
    assert options["output"] == (f"{FOLDER}/isolate.json", f"{FOLDER}/isolate.txt")


def test_with_a_rendezvous_the_nodes_meet_as_torchrun_s_do() -> None:
    words = ["torchrun", "--nnodes", "4", "--rdzv-backend", "c10d", "--rdzv-endpoint", "node01:29500", "t.py"]
    found = _command(words)
    assert found is not None
    assert _options(found)["node_rank"] is None
    launch = detect(found.environ, LaunchFlags())
    assert (launch.nnodes, launch.master_addr, launch.master_port) == (4, "node01", 29500)
    assert launch.rendezvous == "c10d"


def test_options_and_the_launcher_s_environment_are_handed_on() -> None:
    slurm = {
        "SLURM_PROCID": "1",
        "SLURM_STEP_ID": "1",
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "1",
        "SLURM_STEP_NUM_NODES": "4",
        "SLURM_STEP_TASKS_PER_NODE": "1(x4)",
        "SLURM_STEP_NODELIST": "gpu[07-10]",
    }
    found = _command(["python3", "train.py"], slurm, key_file="/home/me/key")
    assert found is not None
    assert _options(found)["key_file"] == "/home/me/key"
    assert found.environ["SLURM_PROCID"] == "1"


def test_one_node_has_no_pairs() -> None:
    assert _command(["torchrun", "--nproc-per-node", "2", "t.py"]) is None
