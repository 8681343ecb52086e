"""The options that commands share."""

from __future__ import annotations

import pytest

from ncclcheck.cli.main import command

SHARED = {
    "nnodes", "node_rank", "master_addr", "master_port", "nproc_per_node", "gpus_per_node", "code", "expect",
    "data", "shared_dir", "checkpoint",
    "select", "ignore", "demote", "require", "fail_on", "timeout", "join_timeout", "output", "format_", "save", "from_",
    "verbose", "quiet", "hosts", "hostfile", "ssh", "remote_python", "env", "meet_in", "key_file", "profile",
}  # fmt: skip
PREFLIGHT = {"apply", "image", "mesh", "mesh_order"}
BENCH = {"sizes", "ops", "backend", "dtype", "iters", "warmup", "budget", "no_verify", "no_preflight", "as_is",
         "advised", "cuda_graph", "min_busbw", "baseline", "tolerance", "isolate"}  # fmt: skip
TRY = {"try_", "try_file", "gain", "seed"}
MESH = {"mesh", "mesh_order", "dims", "mix", "model", "batch", "sequence", "strategy"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("preflight", SHARED | PREFLIGHT),
        ("bench", SHARED | BENCH | MESH | TRY),
        ("run", SHARED | BENCH - {"no_preflight", "isolate"}),
        (
            "soak",
            SHARED
            | {"duration", "ops", "size", "every", "drop", "duty", "state", "resume", "until_finding"}
            | {"backend", "no_preflight"},
        ),
        ("matrix", SHARED | {"full", "leaves", "topology", "size", "backend", "print_"}),
    ],
)
def test_a_command_has_the_options_of_the_contract(name: str, expected: set[str]) -> None:
    assert {parameter.name for parameter in command.commands[name].params} == expected | (
        {"no_preflight"} & expected
    )


@pytest.mark.parametrize("name", list(command.commands))
def test_every_option_is_explained(name: str) -> None:
    for parameter in command.commands[name].params:
        assert parameter.param_type_name == "argument" or getattr(parameter, "help", None), parameter.name
