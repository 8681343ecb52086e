"""`fabric run`, and its older name `lightning run model`: Lightning Fabric, which starts torchrun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from ncclcheck.launch.line.launch_line import CommandLine, Script
from ncclcheck.launch.line.option_words import both_spellings
from ncclcheck.launch.line.torchrun_line import line_of
from ncclcheck.model.errors import UsageError

# lightning_fabric/cli.py 2.6, `_run`: a click command that takes its options anywhere, also after the script.
_VALUES = {
    "--accelerator": None,
    "--strategy": None,
    "--devices": "1",
    "--num-nodes": "1",
    "--node-rank": "0",
    "--main-address": "127.0.0.1",
    "--main-port": "29400",
    "--precision": None,
}
_COMMAND = click.Command(
    "run",
    params=[
        click.Argument(["script"]),
        *(
            click.Option([*both_spellings(name), name[2:].replace("-", "_")], default=default)
            for name, default in _VALUES.items()
        ),
        click.Argument(["script_args"], nargs=-1, type=click.UNPROCESSED),
    ],
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)


def read_fabric(
    words: Sequence[str], environ: Mapping[str, str], program: str = "fabric run"
) -> CommandLine | None:
    """Return the job of `fabric run WORDS`; None where the words only ask for help. Raises UsageError."""
    del environ  # fabric hands all values to torchrun on the command line, so PET_* do not count
    arguments = list(words)
    if arguments[:1] == ["model"]:
        arguments = arguments[1:]
    if arguments[:1] == ["--help"]:
        return None
    try:
        option_values = _COMMAND.make_context(program, arguments).params
    except click.ClickException as error:
        raise UsageError(f"{program} would refuse this command line: {error.format_message()}") from error
    values = {
        "--nnodes": str(option_values["num_nodes"]),
        "--node-rank": str(option_values["node_rank"]),
        "--master-addr": str(option_values["main_address"]),
        "--master-port": str(option_values["main_port"]),
        "--nproc-per-node": "1"
        if option_values["strategy"] == "dp"
        else _devices(str(option_values["devices"])),
    }
    return CommandLine(line_of(program, values), Script(str(option_values["script"])))


def _devices(text: str) -> str:
    """Return how many processes `--devices` starts on a node; "auto" where that depends on the machine (-1, auto)."""
    if text.strip() in ("auto", "-1"):
        return "auto"
    if "," in text:
        return str(len([part for part in text.split(",") if part.strip()]))
    return text.strip()
