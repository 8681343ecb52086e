"""What a node says of itself arrives as it was said, however little of it was sent."""

from __future__ import annotations

import zlib

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ncclcheck.exchange.messages import FACTS_LIMIT_BYTES, SCHEMA
from ncclcheck.exchange.node_report import (
    NOTHING_COMMON,
    CommonFacts,
    NodeReport,
    ReportReader,
    leave_common,
    read_common,
    report_message,
)
from ncclcheck.exchange.probe.reachability import Target
from ncclcheck.exchange.store.memory import MemoryBackend
from ncclcheck.exchange.store.opening import within_process
from ncclcheck.model.codec import encode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from tests.builders import cluster
from tests.fact_builders import node_facts
from tests.hardware_builders import with_hardware

TARGETS = (Target("eth0", "10.0.0.2", 40000),)
FIRST, SECOND, THIRD = (node.facts for node in with_hardware(cluster(3)).nodes)


@pytest.fixture(scope="module")
def common() -> CommonFacts:
    """Node 0's facts as the other nodes find them."""
    store = within_process(MemoryBackend(), 0)
    left = leave_common(store, FIRST)
    assert read_common(store) == left
    return left


def test_of_a_node_like_node_0_little_is_sent_and_all_arrives(common: CommonFacts) -> None:
    message = report_message(SECOND, TARGETS, common)
    assert len(message) < len(report_message(SECOND, TARGETS, NOTHING_COMMON)) < len(encode(SECOND)) / 5
    assert len(message) < 2000 < len(encode(SECOND)) / 15
    reader = ReportReader(common)
    assert reader.read(message) == (SECOND, TARGETS)
    facts, _ = reader.read(report_message(THIRD, (), common))
    assert facts == THIRD
    assert facts.pci is reader.read(message)[0].pci  # kept once


def test_where_node_0_left_nothing_all_is_sent() -> None:
    store = within_process(MemoryBackend(), 0)
    assert read_common(store) == NOTHING_COMMON
    store.set_document("common", b"no facts")
    assert read_common(store) == NOTHING_COMMON
    assert ReportReader(NOTHING_COMMON).read(report_message(SECOND, (), NOTHING_COMMON)) == (SECOND, ())


def test_facts_too_large_are_replaced_by_the_reason(common: CommonFacts) -> None:
    large = replace(SECOND, environment={"NCCL_DEBUG": "x" * FACTS_LIMIT_BYTES})
    facts, _ = ReportReader(common).read(report_message(large, (), common))
    assert isinstance(facts.environment, Missing)
    assert "are accepted" in facts.environment.detail
    assert facts.pci == SECOND.pci


def report(facts: NodeFacts | None, *, of: str = "", same: tuple[str, ...] = (), **more: bytes) -> bytes:
    sections = {} if facts is None else {name: Raw(encode(getattr(facts, name))) for name in NAMES}
    sections |= {name: Raw(section) for name, section in more.items()}
    return encode(NodeReport(SCHEMA, "0", sections, (), of, same))


NAMES = tuple(node_facts(0, 2).__struct_fields__)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (report(SECOND, of="0" * 64, same=("clock",)), "refer to others"),
        (report(SECOND, of="own", same=("clock",)), "section 'clock'"),
        (report(None, of="own", same=("clock", "nothing")), "section 'nothing'"),
        (report(SECOND, more=b"1"), "no section 'more'"),
        (report(SECOND, clock=b'{"missing":"no"}'), "in section clock"),
        (zlib.compress(bytes(FACTS_LIMIT_BYTES * 2)), "decompressed more"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(
    common: CommonFacts, message: bytes, reason: str
) -> None:
    message = message.replace(b'"own"', f'"{common.digest}"'.encode())
    with pytest.raises(DecodeError, match=reason):
        ReportReader(common).read(message)
