"""`fabric run`, and its older name `lightning run model`: Lightning Fabric, which starts torchrun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from ncclcheck.launch.line.launch_line import CommandLine, Script
from ncclcheck.launch.line.torchrun_line import line_of
from ncclcheck.launch.line.words import both_spellings
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
    own = list(words)
    if own[:1] == ["model"]:
        own = own[1:]
    if own[:1] == ["--help"]:
        return None
    try:
        given = _COMMAND.make_context(program, own).params
    except click.ClickException as error:
        raise UsageError(f"{program} would refuse this command line: {error.format_message()}") from error
    values = {
        "--nnodes": str(given["num_nodes"]),
        "--node-rank": str(given["node_rank"]),
        "--master-addr": str(given["main_address"]),
        "--master-port": str(given["main_port"]),
        "--nproc-per-node": "1" if given["strategy"] == "dp" else _devices(str(given["devices"])),
    }
    return CommandLine(line_of(program, values), Script(str(given["script"])))


def _devices(text: str) -> str:
    """Return how many processes `--devices` starts on a node; "auto" where that depends on the machine (-1, auto)."""
    if text.strip() in ("auto", "-1"):
        return "auto"
    if "," in text:
        return str(len([part for part in text.split(",") if part.strip()]))
    return text.strip()
