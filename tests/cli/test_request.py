"""From options and policy to what a run is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from ncclcheck.cli.request import bench_request, refuse_unknown_checks, run_options
from ncclcheck.model.bench import Op
from ncclcheck.model.bench_setup import BenchRequest
from ncclcheck.model.errors import UsageError
from ncclcheck.run.options import RunOptions


def test_nothing_given_is_the_usual_run() -> None:
    assert run_options("preflight", {}) == RunOptions("preflight", wants_documents=False)
    assert run_options("run", {}).timeout_s == 140.0
    assert bench_request({}) == BenchRequest()


def test_a_run_knows_whether_this_process_writes_files() -> None:
    assert run_options("preflight", {"output": ("report.json",)}).wants_documents
    assert run_options("preflight", {"save": "run.json"}).wants_documents


def test_the_budget_of_a_benchmark_is_part_of_its_time() -> None:
    assert run_options("bench", {"budget": 300.0}).timeout_s == 420.0
    assert run_options("bench", {"budget": 300.0, "timeout": 200.0}).timeout_s == 200.0


def test_a_short_run_does_not_wait_longer_for_nodes_than_it_lasts() -> None:
    options = run_options("preflight", {"timeout": 10.0})
    assert (options.timeout_s, options.join_timeout_s) == (10.0, 10.0)


def test_flags_arrive_as_given() -> None:
    flags = run_options(
        "preflight", {"nnodes": 4, "node_rank": 0, "master_addr": "n1", "master_port": 1, "nproc_per_node": 8}
    ).flags
    assert (flags.nnodes, flags.node_rank, flags.master_addr, flags.master_port, flags.nproc_per_node) == (
        4,
        0,
        "n1",
        1,
        8,
    )


def test_the_policy_adds_to_the_command_line_which_wins(tmp_path: Path) -> None:
    policy = tmp_path / "site.toml"
    policy.write_text(
        'nodes = 4\ngpus_per_node = 8\nfail_on = "warning"\nrequire = ["gpu-count"]\nignore = ["NC6"]\n'
    )
    options = run_options(
        "preflight",
        {"expect": str(policy), "gpus_per_node": 4, "require": (("node-silent",), ("gpu-count",))},
    )
    assert options.flags.nnodes == 4
    assert options.gpus_per_node == 4
    assert run_options("preflight", {"expect": str(policy), "image": True}).gpus_per_node is None
    assert options.fail_on == "warning"
    assert options.selection.require == ("node-silent", "gpu-count")
    assert options.expected is not None
    assert [(rule.kind, rule.check) for rule in options.expected.rules] == [
        ("require", "gpu-count"),
        ("ignore", "NC6"),
    ]


@pytest.mark.parametrize(
    ("text", "given", "sentence"),
    [
        ("nodes = 4", {"nnodes": 8}, "--nnodes 8 contradicts nodes = 4"),
        ("nodes = 2", {"node_rank": 5, "nnodes": 2}, "--node-rank 5 is impossible with --nnodes 2"),
        (
            'require = ["gpu-cuont"]',
            {},
            "line 1: require: 'gpu-cuont': no such check: did you mean 'gpu-count'?",
        ),
        ('select = ["gpu-cuont"]', {}, "select: 'gpu-cuont': no such check: did you mean 'gpu-count'?"),
        ("[environment]\nMY_TOKEN = true", {}, "line 2: environment.MY_TOKEN: ncclcheck does not read this"),
        ("[environment]\nNCCL_SOKET_IFNAME = 'eth0'", {}, "did you mean 'NCCL_SOCKET_IFNAME'?"),
        ("[profile.a]", {"profile": "b"}, "--profile 'b': "),
    ],
)
def test_a_policy_that_cannot_be_met_is_wrong_usage(
    tmp_path: Path, text: str, given: dict[str, Any], sentence: str
) -> None:
    policy = tmp_path / "site.toml"
    policy.write_text(text)
    with pytest.raises(UsageError) as caught:
        run_options("preflight", {"expect": str(policy), **given})
    assert sentence in str(caught.value)


def test_a_profile_needs_a_policy() -> None:
    with pytest.raises(UsageError, match="give its file with --expect"):
        run_options("preflight", {"profile": "h100"})


@pytest.mark.parametrize("names", [("all-reduce", "all_gather"), ("allreduce", "ALLGATHER", "all_reduce")])
def test_collectives_are_named_as_torch_or_nccl_tests_do(names: tuple[str, ...]) -> None:
    assert bench_request({"ops": (names,)}).ops == ("all_reduce", "all_gather")
    assert bench_request({"ops": (("all",),)}).ops == get_args(Op)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ops": (("all_reduse",),)}, "--ops 'all_reduse': this version measures all_reduce and all_gather"),
        ({"dtype": "float128"}, "--dtype 'float128': expected one of float32"),
        ({"iters": "0"}, "--iters '0': expected 'auto' or a whole number"),
        ({"iters": "many"}, "--iters 'many': expected 'auto' or a whole number"),
        ({"sizes": "1M-"}, "--sizes '1M-': "),
    ],
)
def test_a_benchmark_that_cannot_be_is_wrong_usage(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        bench_request(given)
    assert sentence in str(caught.value)


def test_cuda_graphs_are_for_nccl() -> None:
    assert bench_request({"cuda_graph": True}).cuda_graph
    with pytest.raises(UsageError, match="--cuda-graph is for nccl"):
        bench_request({"cuda_graph": True, "backend": "gloo"})


def test_a_benchmark_is_as_wanted() -> None:
    request = bench_request(
        {
            "sizes": "8,1K",
            "iters": "7",
            "warmup": 0,
            "budget": 2.0,
            "no_verify": True,
            "backend": "gloo",
            "dtype": "int32",
        }
    )
    assert request == BenchRequest(
        (8, 1024), backend="gloo", dtype="int32", iters=7, warmup=0, budget_s=2.0, verify=False
    )
    assert bench_request({"iters": "AUTO"}).iters is None


@pytest.mark.parametrize("name", ["NC101", "nc1", "node-silent", "node_silent", "NC"])
def test_checks_are_known_by_code_prefix_and_slug(name: str) -> None:
    refuse_unknown_checks([name], "--select")


@pytest.mark.parametrize("address", ["", "a b", " a"])
def test_a_master_that_is_no_name_is_wrong_usage(address: str) -> None:
    with pytest.raises(UsageError, match="--master-addr"):
        run_options("preflight", {"master_addr": address})


def test_the_environment_to_measure_under() -> None:
    assert bench_request({}).under == "proven"
    assert bench_request({"as_is": True, "no_preflight": True}).under == "as-is"
    assert bench_request({"advised": True}).under == "advised"


@pytest.mark.parametrize("given", [{"as_is": True, "advised": True}, {"advised": True, "no_preflight": True}])
def test_a_contradiction_about_the_environment_is_refused(given: dict[str, bool]) -> None:
    with pytest.raises(UsageError, match="--advised"):
        run_options("bench", given)
