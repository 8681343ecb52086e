"""Addresses that are none, in documents of others."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ncclcheck.model.codec import decode
from ncclcheck.model.errors import DecodeError
from ncclcheck.model.facts import Address, Family, MasterPath, Names, Route
from ncclcheck.model.formats.odd_addresses import refuse_odd_addresses
from ncclcheck.run.steps.reach import Probed
from tests.builders import cluster
from tests.fact_builders import some

NO_ADDRESSES = (
    "",
    "-1",
    "1e999",
    "999.999.999.999",
    "10.0.0.1/8",
    "::1::",
    "\x1b[2J",
    "A" * 200_000,
    "1" * 5000,
)


@pytest.mark.parametrize("text", NO_ADDRESSES)
@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (Address, {"family": "inet", "address": "@", "prefix_length": 24, "label": "eth0"}),
        (Route, {"destination": "@", "purpose": "node2", "source_address": "10.0.0.1", "interface": "eth0"}),
        (Names, {"hostname": "node1", "fqdn": "node1", "addresses": ["10.0.0.1", "@"]}),
        (
            MasterPath,
            {
                "name": "node1", "port": 1, "addresses": ["@"], "is_local": False, "source_address": "10.0.0.1",
                "interface": "eth0", "outcome": "answered",
            },
        ),
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(kind: type[object], document: dict[str, object], text: str) -> None:
    refuse_odd_addresses(decode(json.dumps(document).replace("@", "10.0.0.1"), kind))
    odd = decode(json.dumps(document).replace('"@"', json.dumps(text)), kind)
    with pytest.raises(DecodeError, match="is no IP address") as refused:
        refuse_odd_addresses(odd)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("family", "address", "prefix_length"),
    [
        ("inet", "10.0.0.1", 33),
        ("inet", "10.0.0.1", -1),
        ("inet", "fd00::1", 64),
        ("inet6", "10.0.0.1", 24),
        ("inet6", "fd00::1", 1 << 62),
    ],
)
def test_what_is_no_subnet_is_refused(family: Family, address: str, prefix_length: int) -> None:
    with pytest.raises(DecodeError, match="is no subnet"):
        refuse_odd_addresses(Address(family, address, prefix_length, "eth0"))


def test_the_facts_of_a_healthy_cluster_pass() -> None:
    for node in cluster(4).nodes:
        refuse_odd_addresses(node.facts)


@pytest.mark.parametrize("section", ["interfaces", "routes", "names"])
def test_a_section_of_facts_with_an_odd_address_is_refused(section: str) -> None:
    facts = cluster(2).nodes[0].facts
    odd = {
        "interfaces": tuple(
            replace(interface, addresses=(Address("inet", "1e999", 24, "eth0"),))
            for interface in some(facts.interfaces)
        ),
        "routes": (Route("-1", "node2", "10.0.0.1", "eth0"),),
        "names": replace(some(facts.names), addresses=("x",)),
    }[section]
    with pytest.raises(DecodeError, match="is no IP address"):
        refuse_odd_addresses(replace(facts, **{section: odd}))


def test_an_answer_with_a_route_to_no_address_is_refused() -> None:
    answer = Probed("1", "0", (), (Route("-1", "node2", "10.0.0.1", "eth0"),), ())
    with pytest.raises(DecodeError, match="is no IP address"):
        refuse_odd_addresses(answer)
