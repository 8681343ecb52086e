"""The options that commands share."""

from __future__ import annotations

import click
import pytest

from ncclcheck.cli.main import command
from ncclcheck.cli.request import run_options

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


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("preflight", "[60]"),
        ("env", "[60]"),
        ("bench", "[120 + --budget; --isolate adds 300]"),
        ("run", "[120 + --budget]"),
        ("isolate", "[300]"),
        ("matrix", "[300]"),
        ("soak", "[140 + --duration]"),
        ("node", "[50]"),
    ],
)
def test_help_shows_the_usual_timeout_of_its_command(name: str, usual: str) -> None:
    (timeout,) = (parameter for parameter in command.commands[name].params if parameter.name == "timeout")
    assert getattr(timeout, "help", "").endswith(f"  {usual}")
    if usual.strip("[]").isdigit():
        assert run_options(name if name != "env" else "preflight", {}).timeout_s == float(usual.strip("[]"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(command.commands))
def test_only_commands_with_tables_offer_csv(name: str) -> None:
    helps = [
        getattr(option, "help", "") for option in command.commands[name].params if option.name == "output"
    ]
    assert any(".csv" in text for text in helps) == (name in ("bench", "matrix", "report"))


def test_predict_offers_the_formats_it_has() -> None:
    (option,) = (option for option in command.commands["predict"].params if option.name == "format_")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == ("text", "json")


@pytest.mark.parametrize("name", list(command.commands))
def test_every_option_is_explained(name: str) -> None:
    for parameter in command.commands[name].params:
        assert parameter.param_type_name == "argument" or getattr(parameter, "help", None), parameter.name
