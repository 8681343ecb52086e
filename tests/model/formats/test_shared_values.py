"""Documents of many nodes: the same values as by plain decoding, and equal parts are one object."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from ncclcheck.model.codec import decode, encode, encode_pretty
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.fact import Missing
from ncclcheck.model.formats.shared_values import SharedReader, decode_shared
from ncclcheck.model.report import NodeEntry, Report
from ncclcheck.model.saved import Saved
from tests.builders import cluster
from tests.hardware_builders import rdma_cluster, roce_cluster
from tests.large_runs import KINDS, Kind, large_run
from tests.report.reports import report


@pytest.mark.parametrize("kind", KINDS)
def test_the_run_is_the_same(kind: Kind) -> None:
    run = large_run(100, kind)
    data = encode(run)
    assert decode_shared(data, Saved) == decode(data, Saved) == run


@pytest.mark.parametrize(
    "snapshot", [cluster(1), rdma_cluster(3), roce_cluster(3)], ids=["one", "ib", "roce"]
)
def test_other_runs_and_reports_are_the_same(snapshot: msgspec.Struct) -> None:
    run = replace(large_run(2, "healthy"), snapshot=snapshot)
    assert decode_shared(encode(run), Saved) == run
    made = report([], run.snapshot)
    silent = replace(made, nodes=(*made.nodes, NodeEntry("gone", 9, "silent")))
    assert decode_shared(encode(silent), Report) == silent


def test_an_indented_document_and_several_documents_share_as_well() -> None:
    """As --output writes a report: the facts that are missing in it stand in lines of their own."""
    run = large_run(4, "healthy")
    nodes = tuple(
        replace(node, facts=replace(node.facts, gpus=Missing("absent", "no driver")))
        for node in run.snapshot.nodes
    )
    data = encode_pretty(replace(run, snapshot=replace(run.snapshot, nodes=nodes))).encode()
    reader = SharedReader()
    first = decode_shared(data, Saved, reader).snapshot.nodes[0].facts
    second = decode_shared(data, Saved, reader).snapshot.nodes[1].facts
    assert first.gpus == Missing("absent", "no driver")
    assert first.software is second.software
    assert first.pci is second.pci


def test_equal_parts_are_one_object() -> None:
    nodes = decode_shared(encode(large_run(4, "healthy")), Saved).snapshot.nodes
    first, second = nodes[0].facts, nodes[1].facts
    assert first.software is second.software
    assert first.pci is second.pci
    assert first.environment is second.environment
    assert not isinstance(first.gpus, Missing)
    assert not isinstance(second.gpus, Missing)
    assert first.gpus[0].uuid != second.gpus[0].uuid
    assert first.gpus[0].state is second.gpus[0].state


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"kernel":"6.8.0-45-generic"', b'"kernel":7'),
        (b'"host":"node00002"', b'"hots":"node00002"'),
        (b'"host":"node00002",', b""),
        (b'"software":{', b'"software":{"missing":"absent","x":1,'),
        (b'"snapshot":{', b'"snapshot":{"x":1,'),
        (b'"gpus":[', b'"gpus":[7,'),
    ],
)
def test_what_is_damaged_is_rejected_as_by_plain_decoding(old: bytes, new: bytes) -> None:
    data = encode(large_run(3, "healthy")).replace(old, new, 1)
    with pytest.raises(DecodeError) as plain:
        decode(data, Saved)
    with pytest.raises(DecodeError) as shared:
        decode_shared(data, Saved)
    assert str(shared.value) == str(plain.value)
