"""torchrun's command line: read as torch's own parser reads it."""

from __future__ import annotations

from typing import Any

import pytest

from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, Script
from ncclcheck.launch.line.torchrun_line import OPTIONS, endpoint_of, options_in_environment, read_torchrun
from ncclcheck.model.errors import UsageError


def line(*words: str, **environ: str) -> LaunchLine:
    read = read_torchrun([*words, "train.py"], environ)
    assert read is not None
    assert read.launch is not None
    assert read.script == Script("train.py", "-m" in words)
    return read.launch


def torch_parser() -> Any:
    run = pytest.importorskip("torch.distributed.run", reason="torch is not installed")
    return run.get_args_parser()


@pytest.mark.slow
def test_the_table_has_every_option_of_the_installed_torch() -> None:
    table = {name: option.is_flag for option in OPTIONS for name in option.names}
    for action in torch_parser()._actions:
        for name in action.option_strings:
            if name not in ("-h", "--help"):
                assert table.get(name) == (action.nargs == 0), name


LINES = [
    ["--nnodes=2", "--node-rank=1", "--master-addr=10.0.0.1", "--nproc-per-node=8"],
    ["--nnodes", "1:4", "--rdzv-backend=c10d", "--rdzv-endpoint=host:1234", "--rdzv-id", "j"],
    ["--nnodes=2:2", "--rdzv_b", "c10d", "--rdzv_e", "host"],
    ["--standalone", "--nnodes=1", "--nproc_per_node", "gpu"],
    ["--nproc-per-node", "auto", "-m"],
    ["--node_rank", "1", "--nnodes", "3", "--master_port", "1", "-t", "3", "-r0:1,1:2", "--no-python"],
    ["--nnodes=2", "--rdzv-conf", "is_host=1,read_timeout=5", "--rdzv-backend=c10d"],
]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
@pytest.mark.parametrize("environ", [{}, {"PET_NNODES": "5", "PET_STANDALONE": "0", "PET_MASTER_PORT": "77"}])
def test_values_are_those_of_torchs_own_parser(
    words: list[str], environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    theirs = torch_parser().parse_args([*words, "train.py", "--nnodes", "9", "x"])
    ours = read_torchrun([*words, "train.py", "--nnodes", "9", "x"], environ)
    assert ours is not None
    assert ours.launch is not None
    assert ours.script == Script(theirs.training_script, theirs.module)
    least, most = (int(part) for part in (theirs.nnodes.split(":") * 2)[:2])
    assert ours.launch.nnodes == most
    if most > 1 and theirs.rdzv_backend == "c10d":
        assert ours.launch.min_nodes == least
        assert ours.launch.rendezvous_id == theirs.rdzv_id
    if most > 1 and theirs.rdzv_backend == "static":
        assert ours.launch.node_rank == theirs.node_rank
        assert ours.launch.master_addr == theirs.master_addr
        assert ours.launch.master_port == (theirs.master_port or 29500)
    assert ours.launch.nproc_per_node == (
        int(theirs.nproc_per_node) if theirs.nproc_per_node.isdigit() else None
    )


@pytest.mark.parametrize(
    "endpoint", ["host:1234", "host", "10.0.0.1:1", "[::1]:5", "[fe80::1]", "", "a-b.c:65535"]
)
def test_an_endpoint_is_read_as_torch_reads_it(endpoint: str) -> None:
    utils = pytest.importorskip("torch.distributed.elastic.rendezvous.utils", reason="torch is not installed")
    assert endpoint_of("torchrun", endpoint, 29400) == utils.parse_rendezvous_endpoint(endpoint, 29400)


def test_static_is_the_default_and_has_torchs_defaults() -> None:
    read = line("--nnodes=3")
    assert (read.rendezvous, read.nnodes, read.node_rank) == ("static", 3, 0)
    assert (read.master_addr, read.master_port, read.nproc_per_node) == ("127.0.0.1", 29500, 1)


def test_an_endpoint_wins_over_the_master_address_also_when_static() -> None:
    read = line("--nnodes=2", "--node-rank=1", "--rdzv-endpoint=a:7", "--master-addr=b")
    assert (read.master_addr, read.master_port, read.node_rank) == ("a", 7, 1)


def test_c10d_knows_no_node_rank() -> None:
    read = line("--nnodes=1:4", "--rdzv-backend=c10d", "--rdzv-endpoint=head", "--rdzv-conf=is_host=true")
    assert (read.rendezvous, read.node_rank, read.min_nodes, read.nnodes) == ("c10d", None, 1, 4)
    assert (read.master_addr, read.master_port, read.hosts_store) == ("head", 29400, True)


def test_one_node_needs_no_address() -> None:
    assert line("--standalone", "--nproc-per-node=4") == LaunchLine(
        "torchrun", nproc_per_node=4, rendezvous_id="none"
    )


def test_the_environment_counts_where_the_line_is_silent() -> None:
    environ = {"PET_NNODES": "2", "PET_NODE_RANK": "1", "PET_MASTER_ADDR": "a", "PET_NPROC_PER_NODE": "8"}
    read = line("--nproc-per-node=4", **environ)
    assert (read.nnodes, read.node_rank, read.master_addr, read.nproc_per_node) == (2, 1, "a", 4)
    assert options_in_environment({"PET_LOGS_SPECS": "x", "PET_MODULE": "1"}) == {"--module": ""}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--nnodes=two"], "--nnodes 'two'"),
        (["--nnodes=0"], "at least 1"),
        (["--nnodes=4:2"], "MIN:MAX"),
        (["--nnodes=2", "--node-rank=2"], "expected 0 to 1"),
        (["--nnodes=2", "--master-port=0"], "port 0"),
        (["--nnodes=2", "--standalone"], "a job of its own"),
        (["--nnodes=2", "--rdzv-backend=etcd-v2"], "no way to meet"),
        (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=store_type=file"], "no way to meet"),
        (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-conf=is_host"], "KEY=VALUE"),
        (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=a:b"], "HOST:PORT"),
        (["--nproc-per-node=-3"], "at least 1"),
    ],
)
def test_what_cannot_be_is_refused_with_the_option(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        read_torchrun([*words, "train.py"], {})
    assert sentence in str(told.value)


def test_the_old_launcher_has_one_option_more() -> None:
    read = read_torchrun(["--use-env", "train.py"], {}, "python -m torch.distributed.launch")
    assert read == CommandLine(
        LaunchLine("python -m torch.distributed.launch", nproc_per_node=1, rendezvous_id="none"),
        Script("train.py"),
    )
