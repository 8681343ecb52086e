"""Datagrams to whoever shares a link, between real network namespaces."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.lab.nodes import PYTHON, Lab

pytestmark = [pytest.mark.lab]

ANSWERER = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    own.bind(("0.0.0.0", 29500))
    print("ready", flush=True)
    while True:
        data, sender = own.recvfrom(2000)
        own.sendto(b"I heard " + data, sender)
"""
ASKER = """
import json, sys
from ncclcheck.exchange.join.broadcast import broadcast
found = broadcast(b"hello", 29500, json.loads(sys.argv[1]), 1.0)
print(json.dumps(sorted((address, answer.decode()) for address, answer in found)))
"""


def asked(lab: Lab, name: str, *hosts: str) -> list[list[str]]:
    ended = lab[name].run([PYTHON, "-c", ASKER, json.dumps(hosts)])
    assert ended.returncode == 0, str(ended)
    found: list[list[str]] = json.loads(ended.stdout)
    return found


def test_everybody_on_a_link_hears_it_also_from_a_node_without_a_usable_address(
    lab: Callable[..., Lab],
) -> None:
    three = lab(3)
    with (
        three["node1"].service([PYTHON, "-c", ANSWERER]) as first,
        three["node2"].service([PYTHON, "-c", ANSWERER]) as second,
    ):
        first.wait_for("ready", 60)
        second.wait_for("ready", 60)
        everybody = [["10.78.0.1", "I heard hello"], ["10.78.0.2", "I heard hello"]]
        assert asked(three, "node3") == everybody
        three["node3"].ip("route add unreachable 10.78.0.1", "route add unreachable 10.78.0.2")
        assert asked(three, "node3") == everybody
        # Not on the link any more: only the hosts that the launcher names.
        three["node3"].ip("route del unreachable 10.78.0.1")
        three.switch.ip("link set eth0-3 nomaster")
        assert asked(three, "node3", "node1", "no-such-host") == []


def test_a_machine_with_nothing_but_loopback_sends_nothing_and_says_so() -> None:
    program = (
        "from ncclcheck.exchange.join.broadcast import broadcast; print(broadcast(b'x', 29500, (), 0.1))"
    )
    ended = subprocess.run(
        ["unshare", "--net", "--map-root-user", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in ended.stderr:
        pytest.skip(ended.stderr)
    assert ended.stdout == "()\n", ended.stderr
