"""`ncclcheck predict`: what NCCL would choose, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ncclcheck.cli import options
from ncclcheck.model.errors import UsageError
from ncclcheck.model.exit_code import UNKNOWN

if TYPE_CHECKING:
    from ncclcheck.model.fact import Fact
    from ncclcheck.model.report import NcclEntry
    from ncclcheck.model.snapshot import Node


@click.command()
@options.from_file
@click.option(
    "--nccl-version",
    multiple=True,
    metavar="V",
    help="Predict for this version of NCCL, e.g. 2.27.7; repeatable.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"], case_sensitive=False),
    default="text",
    help="Output format.  [text]",
)
@click.pass_context
def predict(
    context: click.Context, /, *, from_: str | None, nccl_version: tuple[str, ...], format_: str
) -> None:
    """Show which interface, network and HCAs NCCL would choose.

    Also shows why, and what would change the choice. The interface comes from the NCCL library of this node, the rest
    is predicted; with --nccl-version everything is predicted.
    """
    from ncclcheck.cli.screen import write_error, write_out
    from ncclcheck.model.codec import encode_pretty
    from ncclcheck.model.fact import Missing
    from ncclcheck.report.text.nccl_text import choice_lines
    from ncclcheck.report.text.page import draw

    _refuse_unknown_versions(nccl_version)
    found = list(entries(_nodes(from_), nccl_version))
    known = tuple(entry for _, entry in found if not isinstance(entry, Missing))
    if format_ == "json":
        write_out(encode_pretty({"nccl": known}) + "\n")
    else:
        write_out(draw(choice_lines(known, verbose=1), width=None, color=False))
    for host, entry in found:
        if isinstance(entry, Missing):
            write_error(f"{host}: what NCCL would choose is not known: {entry}")
    context.exit(0 if len(known) == len(found) else UNKNOWN)


def _refuse_unknown_versions(versions_asked: Sequence[str]) -> None:
    from ncclcheck.nccl import versions

    for version in versions_asked:
        try:
            versions.parse(version)
        except UsageError as error:
            raise UsageError(f"--nccl-version {error}") from None


def entries(nodes: Sequence[Node], nccl_versions: Sequence[str]) -> Iterator[tuple[str, Fact[NcclEntry]]]:
    """Yield each host with its choice: the answer of its library, or the model's for each version."""
    from ncclcheck.nccl.explanation import explain
    from ncclcheck.report.build import nccl_entry

    for node in nodes:
        if not nccl_versions:
            yield node.host, nccl_entry(node.host, explain(node.facts))
        for version in nccl_versions:
            yield node.host, nccl_entry(node.host, explain(node.facts, version))


def _nodes(file: str | None) -> Sequence[Node]:
    from ncclcheck.cli.documents import load_saved
    from ncclcheck.facts.facts_document import this_node
    from ncclcheck.model.snapshot import Node

    if file is None:
        document = this_node(os.environ, ())
        return [Node(document.host, 0, document.facts)]
    nodes = load_saved(file, "preflight").snapshot.nodes
    if not nodes:
        raise UsageError(f"--from {file}: no node reported in this run, so there is nothing to predict from")
    return sorted(nodes, key=lambda node: node.node_rank)
