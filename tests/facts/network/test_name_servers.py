"""Name servers that are silent are told from those that answer, refuse or cannot be reached."""

from __future__ import annotations

import os

import pytest

from ncclcheck.facts.network import name_servers
from ncclcheck.facts.network.name_servers import _configured, _query, servers_text
from tests.facts.namespace import Namespace

BOUND = "import threading; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.2', 53))"
ANSWERING = f"{BOUND}; threading.Thread(target=lambda: s.sendto(*s.recvfrom(512)), daemon=True).start()"


def test_the_first_three_servers_and_the_first_domain_are_what_the_library_takes() -> None:
    text = (
        "# x\nnameserver 10.0.0.1\nnameserver not-an-address\nnameserver fe80::1%eth0\nnameserver 10.0.0.2\n"
        "nameserver 10.0.0.3\nsearch a.example b.example\n"
    )
    assert _configured(text) == (("10.0.0.1", "fe80::1%eth0", "10.0.0.2"), "a.example")
    assert _configured("domain d.example.\n") == ((), "d.example")
    assert _configured("nameserver 10.0.0.1\noptions use-vc\n") == ((), "")


def test_a_query_is_one_question_for_an_address() -> None:
    assert _query("n1.example")[2:] == b"\1\0\0\1\0\0\0\0\0\0\2n1\7example\0\0\1\0\1"


def test_the_words() -> None:
    assert servers_text(("10.0.0.1", "10.0.0.2")) == "the name servers 10.0.0.1 and 10.0.0.2"


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize(("prelude", "silent"), [(BOUND, ["127.0.0.2"]), (ANSWERING, [])])
def test_only_one_that_says_nothing_is_silent(prelude: str, silent: list[str]) -> None:
    with Namespace() as node:
        node.ip("link set lo up")
        # 127.0.0.1 refuses, and to 203.0.113.1 there is no way: no look-up waits for these
        node.etc("resolv.conf", "nameserver 127.0.0.1\nnameserver 127.0.0.2\nnameserver 203.0.113.1\n")
        assert node.evaluate("network.name_servers", "silent_servers()", prelude) == silent


def test_hastening_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    name_servers.hasten_lookups()
    assert "RES_OPTIONS" not in os.environ
    monkeypatch.setenv("RES_OPTIONS", "rotate")
    name_servers.hasten_lookups()
    assert os.environ["RES_OPTIONS"] == "rotate"
