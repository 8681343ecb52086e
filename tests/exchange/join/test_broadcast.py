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
from ncclcheck.exchange.join.broadcast import BroadcastCall, broadcast
found = broadcast(BroadcastCall(b"hello", 29500, json.loads(sys.argv[1])), 1.0)
print(json.dumps(sorted((address, answer.decode()) for address, answer in found)))
"""


def asked(lab: Lab, name: str, *hosts: str) -> list[list[str]]:
    ended = lab[name].run([PYTHON, "-c", ASKER, json.dumps(hosts)])
    assert ended.returncode == 0, str(ended)
    found: list[list[str]] = json.loads(ended.stdout)
    return found


@pytest.mark.further
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
        "from ncclcheck.exchange.join.broadcast import BroadcastCall, broadcast; "
        "print(broadcast(BroadcastCall(b'x', 29500), 0.1))"
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


FLOOD = """
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("0.0.0.0", 29500))
senders = []
for number in range(16):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind((f"10.78.0.{100 + number}", 29500))
    senders.append(sender)
print("ready", flush=True)
while True:
    _, asker = own.recvfrom(2000)
    for sender in senders:
        sender.sendto(b"garbage", asker)
"""


@pytest.mark.further
def test_a_stranger_with_many_addresses_takes_no_place_of_who_answers(lab: Callable[..., Lab]) -> None:
    three = lab(3)
    three["node2"].ip(*(f"address add 10.78.0.{100 + number}/24 dev eth0" for number in range(16)))
    asker = ASKER.replace("sys.argv[1]))", 'sys.argv[1]), lambda answer: answer.startswith(b"I heard"))')
    with (
        three["node2"].service([PYTHON, "-c", FLOOD]) as stranger,
        three["node1"].service([PYTHON, "-c", ANSWERER]) as first,
    ):
        stranger.wait_for("ready", 60)
        first.wait_for("ready", 60)
        ended = three["node3"].run([PYTHON, "-c", asker, "[]"])
    assert json.loads(ended.stdout) == [["10.78.0.1", "I heard hello"]], str(ended)
