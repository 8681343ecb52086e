"""`ncclcheck facts`: what this node says of itself."""

from __future__ import annotations

import os

import click

from ncclcheck import __version__
from ncclcheck.cli.values import FileName


@click.group(invoke_without_command=True)
@click.option(
    "--code", multiple=True, type=FileName(), metavar="PATH", help="Also hash the code in PATH; repeatable."
)
@click.option(
    "--data",
    multiple=True,
    type=FileName(),
    metavar="PATH",
    help="Also read the state of the data in PATH; repeatable.",
)
@click.option(
    "--shared-dir",
    multiple=True,
    type=FileName(),
    metavar="PATH",
    help="Also read the state of the shared folder PATH, without writing to it; repeatable.",
)
@click.option(
    "--root",
    type=FileName(),
    metavar="TREE",
    help="Read a recorded machine instead of this one: TREE holds its /sys, /proc and /dev.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json"], case_sensitive=False),
    default="json",
    hidden=True,  # the only format; scripts may name it
    help="Output format.  [json]",
)
@click.option(
    "--as-policy",
    is_flag=True,
    help="Print the policy (TOML, for --expect) that this node meets as it is.",
)
@click.pass_context
def facts(
    context: click.Context,
    /,
    *,
    code: tuple[str, ...],
    data: tuple[str, ...],
    shared_dir: tuple[str, ...],
    root: str | None,
    format_: str,
    as_policy: bool,
) -> None:
    """Print the facts of this node as JSON, or as a policy.

    Other commands read the JSON with --from and the policy with --expect.
    """
    if context.invoked_subcommand is not None:
        return
    from ncclcheck.model.errors import UsageError

    for option, paths in (("--code", code), ("--data", data), ("--shared-dir", shared_dir)):
        if root is not None and paths:
            raise UsageError(
                f"{option}: {paths[0]} is on this machine, of which --root reads nothing: give one of them"
            )
    from ncclcheck.cli.files import refuse_hung
    from ncclcheck.cli.screen import write_out
    from ncclcheck.facts.facts_document import recorded_machine, this_node
    from ncclcheck.model.codec import encode_pretty

    if root is not None:
        refuse_hung(root, "--root")
    del format_  # there is only one
    document = this_node(os.environ, code, data, shared_dir) if root is None else recorded_machine(root)
    if as_policy:
        from ncclcheck.report.text import policy_text

        write_out(policy_text.as_policy(document.host, document.facts, __version__))
    else:
        write_out(encode_pretty(document) + "\n")


@facts.command()
@click.argument("files", metavar="FILE...", type=FileName(), nargs=-1)
def merge(*, files: tuple[str, ...]) -> None:
    """Merge the facts of several nodes into one run.

    'preflight --from' then compares the nodes (versions, variables, GPUs, adapters, paths), and 'predict --from' shows
    what NCCL would choose on each. Checks that need a connection between the nodes stay unknown.
    """
    from ncclcheck.cli.documents import load, of_nodes
    from ncclcheck.cli.screen import write_out
    from ncclcheck.model.codec import encode
    from ncclcheck.model.errors import UsageError
    from ncclcheck.model.formats.shared_values import SharedReader
    from ncclcheck.model.saved import FactsDocument

    if not files:
        raise UsageError(
            "facts merge: which facts? give the files that 'ncclcheck facts' printed, one per node"
        )
    reader = SharedReader()
    documents = []
    for file in files:
        document = load(file, "facts merge", reader)
        if not isinstance(document, FactsDocument):
            raise UsageError(f"facts merge {file}: not the facts of a node, as 'ncclcheck facts' prints them")
        documents.append(document)
    write_out(encode(of_nodes(documents)).decode() + "\n")
