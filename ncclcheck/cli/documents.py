"""What `--from` and `report` take: a saved run, the facts of a node, a report; distinguished by their content."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

import ncclcheck
from ncclcheck.checks.registry import every_check
from ncclcheck.cli.files import begin_reading, contents, read_bytes
from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError, UsageError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.odd_addresses import refuse_odd_addresses
from ncclcheck.model.formats.shared_values import SharedReader, decode_shared
from ncclcheck.model.report import SCHEMA_VERSION, Report, Tool
from ncclcheck.model.saved import FactsDocument, Saved, SavedCommand
from ncclcheck.model.snapshot import Node, Snapshot

T = TypeVar("T")
SAVED_KIND = "ncclcheck-snapshot"
_OF_MANY_NODES_BYTES = 16 << 20
_BEGINS_AS_SAVED = re.compile(
    rf'\s*{{\s*"schema_version"\s*:\s*"{re.escape(SCHEMA_VERSION)}"\s*,\s*"kind"\s*:\s*"{SAVED_KIND}"'.encode()
)


class _Header(Struct):
    """The fields that show the kind of a document."""

    schema_version: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    verdict: Raw | UnsetType = UNSET
    facts: Raw | UnsetType = UNSET


class _Written(Struct):
    tool: Tool | UnsetType = UNSET


def load(file: str, option: str, reader: SharedReader | None = None) -> Saved | FactsDocument | Report:
    """Load the document in `file`. Raises UsageError with one sentence where it is damaged, unknown or too new.

    Give one `reader` to all of many files: what they have in common is then decoded and kept once.
    """
    return _document(read_bytes(file, option), file, option, reader or SharedReader())


def _document(data: bytes, file: str, option: str, reader: SharedReader) -> Saved | FactsDocument | Report:
    if _BEGINS_AS_SAVED.match(data):  # a header of its own would be read through hundreds of megabytes
        with suppress(DecodeError):
            saved = _collected_never(data, Saved, reader)
            if (saved.schema_version, saved.kind) == (SCHEMA_VERSION, SAVED_KIND):
                return saved
    try:
        header = decode(data, _Header)
    except DecodeError as error:
        raise UsageError(f"{option} {file}: not a document of ncclcheck: {error}") from error
    if header.schema_version is UNSET:
        raise UsageError(f"{option} {file}: not a document of ncclcheck: it has no schema_version")
    if header.schema_version != SCHEMA_VERSION:
        raise UsageError(
            f"{option} {file}: schema version {header.schema_version[:40]!r}, but ncclcheck "
            f"{ncclcheck.__version__} reads version {SCHEMA_VERSION!r}: use the ncclcheck that wrote it"
        )
    if header.kind == SAVED_KIND:
        return _decoded(data, Saved, f"{option} {file}", reader)
    if header.verdict is not UNSET:
        return _decoded(data, Report, f"{option} {file}", reader)
    if header.facts is not UNSET:
        return _decoded(data, FactsDocument, f"{option} {file}", reader)
    raise UsageError(
        f"{option} {file}: neither a saved run, nor the facts of a node, nor a report of ncclcheck"
    )


def _decoded(data: bytes, document_type: type[T], where: str, reader: SharedReader) -> T:
    try:
        document = _collected_never(data, document_type, reader)
        if isinstance(document, Saved):
            refuse_odd_addresses([node.facts for node in document.snapshot.nodes])
        elif isinstance(document, FactsDocument):
            refuse_odd_addresses(document.facts)
        return document
    except DecodeError as error:
        name = {"Saved": "saved run", "FactsDocument": "facts file"}.get(document_type.__name__, "report")
        if version := _other_version(data):
            raise UsageError(
                f"{where}: ncclcheck {version} wrote this {name}, and ncclcheck {ncclcheck.__version__} cannot "
                f"read it: use the newer one ({error})"
            ) from error
        raise UsageError(f"{where}: damaged {name}: {error}") from error


def _collected_never(data: bytes, document_type: type[T], reader: SharedReader) -> T:
    """Decode, and keep the garbage collector from walking what was decoded: it stays, and has no cycle.

    Nor has what is worked out from it: after a document of many nodes the collector stays off in this process, which
    ends with the command; one that goes on gets it back from `collector_as_before`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        document = decode_shared(data, document_type, reader)
        gc.freeze()
    finally:
        if was_enabled and len(data) < _OF_MANY_NODES_BYTES:
            gc.enable()
    return document


@contextmanager
def collector_as_before() -> Iterator[None]:
    """Leave the garbage collector as it was before documents were read: the process is the caller's own."""
    was_enabled, has_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        if not has_frozen:  # else it is not known which objects the caller froze
            gc.unfreeze()


def _other_version(data: bytes) -> str:
    """Return the version of ncclcheck that wrote it, if that is another one."""
    try:
        tool = decode(data, _Written).tool
    except DecodeError:
        return ""
    return "" if tool is UNSET or tool.version == ncclcheck.__version__ else tool.version[:40]


def load_saved(file: str, command: SavedCommand) -> Saved:
    """Load a saved run for `--from`; facts become the run of their one node. Raises UsageError for anything else."""
    reading = begin_reading(file, "--from")
    every_check()  # they are needed next, and their import takes as long as to read a run of thousands of nodes
    document = _document(contents(reading, file, "--from"), file, "--from", SharedReader())
    if isinstance(document, Report):
        raise UsageError(
            f"--from {file}: this is a report: 'ncclcheck report {file}' shows it; --from takes what --save wrote"
        )
    return as_run(document, command)


def as_run(document: Saved | FactsDocument, command: SavedCommand) -> Saved:
    """Return the saved run; facts become the run of their one node."""
    return document if isinstance(document, Saved) else _of_one_node(document, command)


def _of_one_node(document: FactsDocument, command: SavedCommand) -> Saved:
    launch = document.facts.launch
    of_larger_job = not isinstance(launch, Missing) and launch.nnodes > 1
    rank = 0 if isinstance(launch, Missing) else launch.node_rank
    return _saved_facts(
        Snapshot(
            nodes=(Node(document.host, rank, document.facts),),
            viewpoint="one-node" if of_larger_job else "all",
            claims=() if isinstance(launch, Missing) else (launch,),
            claim_hosts=() if isinstance(launch, Missing) else (document.host,),
        ),
        command,
    )


def of_nodes(documents: Sequence[FactsDocument]) -> Saved:
    """Return the run of all these nodes, of which nothing but the facts is known: no connection was tried.

    They are in the order of their ranks where each file is of a node of one job of so many, else in the order given.
    Raises UsageError for two documents of the same host.
    """
    hosts = [document.host for document in documents]
    if twice := sorted({host for host in hosts if hosts.count(host) > 1}):
        raise UsageError(f"facts merge: {twice[0]} is there twice: give one file per node")
    launches = [launch for document in documents if not isinstance(launch := document.facts.launch, Missing)]
    of_one_job = len({launch.node_rank for launch in launches if launch.nnodes == len(documents)}) == len(
        hosts
    )
    ranks = [launch.node_rank for launch in launches] if of_one_job else range(len(hosts))
    nodes = [
        Node(document.host, rank, document.facts) for document, rank in zip(documents, ranks, strict=True)
    ]
    return _saved_facts(
        Snapshot(
            nodes=tuple(sorted(nodes, key=lambda node: node.node_rank)),
            claims=tuple(launches) if of_one_job else (),
            claim_hosts=tuple(hosts) if of_one_job else (),
        ),
        "preflight",
    )


def _saved_facts(snapshot: Snapshot, command: SavedCommand) -> Saved:
    software = snapshot.nodes[0].facts.software
    version = "unknown" if isinstance(software, Missing) else software.ncclcheck
    return Saved(
        schema_version=SCHEMA_VERSION,
        kind=SAVED_KIND,
        tool=Tool("ncclcheck", version),
        command=command,
        created="unknown",  # facts carry no date
        elapsed_s=0.0,
        interrupted=False,
        snapshot=snapshot,
    )
