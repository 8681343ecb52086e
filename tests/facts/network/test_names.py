"""Names resolve, fail with the right word, or are given up at the deadline."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ncclcheck.facts.network.names import _lookup, hanging_files, read_names, resolve
from ncclcheck.model.fact import Missing
from tests.facts.namespace import Namespace
from tests.lab.namespaces import lab_skip_reason


def test_localhost_and_plain_addresses_resolve_to_themselves() -> None:
    found = resolve("localhost", 10)
    assert isinstance(found, tuple)
    assert {"127.0.0.1", "::1"} & set(found)
    assert resolve("192.0.2.7", 10) == ("192.0.2.7",)


def test_a_link_local_address_keeps_its_scope_for_connecting_and_the_host_name_has_none() -> None:
    assert resolve("fe80::1%lo", 10) == ("fe80::1%lo",)
    assert _lookup("fe80::1%lo") == ("fe80::1",)


@pytest.mark.parametrize("name", ["", "a..b", "x" * 70 + ".example", "no such name"])
def test_what_is_no_name_is_said_not_raised(name: str) -> None:
    answer = resolve(name, 10)
    assert isinstance(answer, Missing)
    assert answer.missing in ("absent", "error")
    assert answer.detail


def test_the_host_name_is_that_of_the_system() -> None:
    assert read_names(10).hostname == socket.gethostname()


@pytest.mark.lab
def test_each_node_sees_its_own_hosts_file() -> None:
    with Namespace() as node:
        node.etc("hosts", "10.9.0.1 master\n10.9.0.2 master\n127.0.1.1 other\n")
        node.etc("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        assert node.evaluate("network.names", "resolve('master', 5)") == ["10.9.0.1", "10.9.0.2"]
        assert node.evaluate("network.names", "resolve('other', 5)") == ["127.0.1.1"]


@pytest.mark.lab
def test_a_name_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    with Namespace() as node:
        node.ip("link set lo up")
        node.etc("hosts", "127.0.0.1 localhost\n")
        node.etc("resolv.conf", "nameserver 127.0.0.1\noptions timeout:30\n")
        silent = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
        answer = node.evaluate(
            "network.names", "[s.bind(('127.0.0.1', 53)), resolve('node01.example', 0.5)][1]", f"s = {silent}"
        )
        detail = "node01.example: no answer from name resolution within 0.5 s"
        assert answer == {"missing": "timeout", "detail": detail}


@pytest.mark.parametrize("name", ["hosts", "resolv.conf"])
def test_a_file_of_the_resolver_that_is_a_fifo_is_named(tmp_path: Path, name: str) -> None:
    if reason := lab_skip_reason():
        pytest.skip(reason)
    os.mkfifo(tmp_path / "fifo")
    program = (
        "from ncclcheck.facts.network.names import hanging_files; import os; print(hanging_files(), flush=True); "
        "os._exit(0)"
    )
    script = f'mount --bind {tmp_path}/fifo /etc/{name}; exec "$@"'
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", program]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == f"('/etc/{name}',)\n"


def test_where_names_are_looked_up_no_file_hangs() -> None:
    assert hanging_files() == ()
