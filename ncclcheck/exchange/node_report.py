"""A node's facts on their way to node 0: only what is not as on node 0, which most of it is on most nodes.

Node 0 leaves its own facts in the store before anybody reports: the common value. A node names the sections that are
the same there, and sends the others, compressed with the common value as their dictionary. So of thousands of equal
nodes each sends a few hundred bytes; and node 0 decodes, and keeps, what several nodes say only once.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, get_type_hints

from msgspec import Raw, Struct

from ncclcheck.exchange.messages import (
    FACTS_LIMIT_BYTES,
    SCHEMA,
    TOOL_VERSION,
    pack,
    read_message,
    unpack,
)
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.store import keys
from ncclcheck.exchange.store.base import Store
from ncclcheck.model.codec import decode, encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.model.formats.odd_addresses import refuse_odd_addresses
from ncclcheck.model.formats.shared_values import SharedReader

_WINDOW_BYTES = 32 * 1024  # of zlib: more of a dictionary has no effect
_ROOM_BYTES = 64 * 1024  # of a message, for all that is not facts
_TYPES = get_type_hints(NodeFacts)


class NodeReport(Struct, frozen=True, forbid_unknown_fields=True):
    """A node's facts by section, and where it listens.

    The sections in `same` are as in the common value, whose digest is `common`.
    """

    schema_version: str
    tool_version: str
    facts: dict[str, Raw]
    targets: tuple[Target, ...]
    common: str = ""
    same: tuple[str, ...] = ()


class CommonFacts(Struct, frozen=True):
    """Node 0's own facts by section, as JSON; the digest that names them; and what of them helps to compress others."""

    sections: dict[str, bytes]
    digest: str
    dictionary: bytes


NOTHING_COMMON = CommonFacts({}, "", b"")


def leave_common(store: Store, facts: NodeFacts) -> CommonFacts:
    """Leave node 0's facts as the common value, before any node is told that node 0 serves."""
    document = encode(facts)
    failed = store.set_document(keys.COMMON, pack(facts)) if len(document) <= FACTS_LIMIT_BYTES else True
    return NOTHING_COMMON if failed else _common_of(document)


def read_common(store: Store) -> CommonFacts:
    """Return the common value; nothing is common where it is not there, or cannot be read."""
    data = store.get_document(keys.COMMON)
    if isinstance(data, Missing):
        return NOTHING_COMMON
    try:
        return _common_of(unpack(data, FACTS_LIMIT_BYTES))
    except DecodeError:
        return NOTHING_COMMON


def _common_of(document: bytes) -> CommonFacts:
    sections = {name: bytes(section) for name, section in decode(document, dict[str, Raw]).items()}
    # The smaller sections differ between most nodes, and the window of zlib holds the end of a dictionary.
    largest_first = sorted(sections, key=lambda name: len(sections[name]), reverse=True)
    dictionary = b"".join(sections[name] for name in largest_first)[-_WINDOW_BYTES:]
    return CommonFacts(sections, hashlib.sha256(document).hexdigest(), dictionary)


def report_message(facts: NodeFacts, targets: tuple[Target, ...], common: CommonFacts) -> bytes:
    """Return the message with a node's facts. Where they are too large to be accepted, the reason is in their place."""
    sections = _sections(facts)
    size = sum(map(len, sections.values()))
    if size > FACTS_LIMIT_BYTES - _ROOM_BYTES:
        oversize = encode(Missing("unsupported", f"facts of {size} bytes, {FACTS_LIMIT_BYTES} are accepted"))
        sections |= {"code": oversize, "environment": oversize}
    same = tuple(name for name, section in sections.items() if common.sections.get(name) == section)
    own_sections = {name: Raw(section) for name, section in sections.items() if name not in same}
    report = encode(
        NodeReport(SCHEMA, TOOL_VERSION, own_sections, targets, common.digest if same else "", same)
    )
    if not common.dictionary:
        return zlib.compress(report)
    packing = zlib.compressobj(zdict=common.dictionary)
    return packing.compress(report) + packing.flush()


def _sections(facts: NodeFacts) -> dict[str, bytes]:
    return {name: encode(getattr(facts, name)) for name in _TYPES}


class ReportReader:
    """Reads the reports of nodes. State: what was decoded, by its text, so that equal sections and parts are one."""

    def __init__(self, common: CommonFacts) -> None:
        self._common = common
        self._shared = SharedReader()
        self._known: dict[tuple[str, bytes], Any] = {}
        self._values_of_common: dict[str, Any] = {}

    def read(self, data: bytes) -> tuple[NodeFacts, tuple[Target, ...]]:
        """Return a node's facts and where it listens. Raises DecodeError for what is no report."""
        report = read_message(data, NodeReport, FACTS_LIMIT_BYTES, self._common.dictionary)
        if report.same and report.common != self._common.digest:
            raise DecodeError("its facts refer to others than those of node 0")
        values = {name: self._value(name, bytes(section)) for name, section in report.facts.items()}
        for name in report.same:
            if name in values or name not in self._common.sections:
                raise DecodeError(f"section {name[:40]!r} is not in the facts of node 0")
            if name not in self._values_of_common:
                self._values_of_common[name] = self._value(name, self._common.sections[name])
            values[name] = self._values_of_common[name]
        facts = NodeFacts(**values)
        refuse_odd_addresses(facts)
        return facts, report.targets

    def _value(self, name: str, section: bytes) -> Any:
        if name not in _TYPES:
            raise DecodeError(f"there is no section {name[:40]!r} of facts")
        key = name, hashlib.blake2b(section, digest_size=16).digest()
        if key not in self._known:
            try:
                self._known[key] = self._shared.value(section, _TYPES[name])
            except DecodeError as error:
                raise DecodeError(f"{error} - in section {name}") from error
        return self._known[key]
