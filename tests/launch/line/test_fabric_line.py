"""`fabric run`: options anywhere, defaults of Lightning Fabric, and a torchrun behind it."""

from __future__ import annotations

import pytest

from ncclcheck.launch.line.fabric_line import _VALUES, read_fabric
from ncclcheck.launch.line.launch_line import LaunchLine, Script
from ncclcheck.model.errors import UsageError

NODES = ["--num-nodes=2", "--node_rank", "1", "--main-address", "head"]


def line(*words: str) -> LaunchLine:
    read = read_fabric(words, {})
    assert read is not None
    assert read.launch is not None
    assert read.script == Script("train.py")
    return read.launch


def test_nodes_rank_and_address() -> None:
    read = line(*NODES, "--devices=4", "train.py", "--lr", "0.1")
    assert (read.nnodes, read.node_rank, read.master_addr, read.master_port) == (2, 1, "head", 29400)
    assert (read.rendezvous, read.nproc_per_node) == ("static", 4)


def test_options_after_the_script_are_fabrics_own_too() -> None:
    assert line("train.py", *NODES, "--main_port=7").master_port == 7


@pytest.mark.parametrize(("devices", "count"), [("2", 2), ("0,1,2", 3), ("auto", None), ("-1", None)])
def test_devices_are_processes(devices: str, count: int | None) -> None:
    assert line(f"--devices={devices}", "train.py").nproc_per_node == count


def test_the_older_name() -> None:
    assert line("model", *NODES, "train.py").nnodes == 2


def test_what_fabric_would_refuse() -> None:
    with pytest.raises(UsageError, match="fabric run would refuse"):
        read_fabric(["--devices"], {})
    assert read_fabric(["--help"], {}) is None


@pytest.mark.slow
def test_the_table_has_every_option_of_the_installed_fabric() -> None:
    cli = pytest.importorskip("lightning_fabric.cli", reason="lightning-fabric is not installed")
    options = [param for param in cli._run.params if param.param_type_name == "option"]
    assert {
        option.opts[0]: option.default if option.default is None else str(option.default)
        for option in options
    } == _VALUES
