"""Node sets and host files, in the forms that people and launchers write, and what is none."""

from __future__ import annotations

import time

import pytest

from ncclcheck.launch.hostlist import MOST_HOSTS, ListedHost, parse_hostfile, parse_hosts
from ncclcheck.model.errors import UsageError


def names(text: str) -> list[str]:
    return [host.name for host in parse_hosts(text, "--hosts:")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node01", ["node01"]),
        ("node[01-03]", ["node01", "node02", "node03"]),
        ("node[3,1],login", ["node3", "node1", "login"]),
        ("b,a,b", ["b", "a"]),
        ("gpu-a[1-2].example.org", ["gpu-a1.example.org", "gpu-a2.example.org"]),
        ("10.0.0.[1-2]", ["10.0.0.1", "10.0.0.2"]),
        ("fd78::1,10.0.0.1", ["fd78::1", "10.0.0.1"]),
        ("node1 node2", ["node1", "node2"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ],
)
def test_sets_keep_their_order(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_a_user_before_the_name_is_for_ssh_alone() -> None:
    hosts = parse_hosts("root@node[1-2],node3", "--hosts:")
    assert [host.target for host in hosts] == ["root@node1", "root@node2", "node3"]
    assert [host.name for host in hosts] == ["node1", "node2", "node3"]


@pytest.mark.parametrize("text", ["[", "[a", "[1,", "1-", "a@", "@", "n[1-2]", "[" * 500_000 + "]"])
def test_an_endless_line_is_refused_at_once(text: str) -> None:
    started = time.thread_time()
    with pytest.raises(UsageError):
        parse_hostfile(text * (1_000_000 // len(text)), "hosts")
    assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    "text", ["", ",", "node[1-", "node[3-1]", "-oProxyCommand=id", "a;b", "$(id)", "@group", "a@-x"]
)
def test_what_is_no_list_of_hosts_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--hosts:"):
        parse_hosts(text, "--hosts:")


def test_the_host_files_of_mpi_deepspeed_and_others() -> None:
    text = """
# the cluster
node01 slots=8
node02 slots=8 max_slots=16   # Open MPI
node03:4
node04 2
root@node05
node[06-07]  slots=8
node08 slots=0
node01 slots=8
"""
    assert parse_hostfile(text, "hosts") == (
        ListedHost("node01", "", 8),
        ListedHost("node02", "", 8),
        ListedHost("node03", "", 4),
        ListedHost("node04", "", 2),
        ListedHost("node05", "root", None),
        ListedHost("node06", "", 8),
        ListedHost("node07", "", 8),
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [("node1 eight", "'eight'"), ("-F x", "'-F'|'x'"), ("node[1-", "node"), ("a b c", "'b'")],
)
def test_a_bad_line_is_named_with_its_number(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=rf"--hostfile hosts, line 3: .*({words})"):
        parse_hostfile(f"node1\n\n{line}\n", "hosts")


def test_an_empty_file_names_no_host() -> None:
    with pytest.raises(UsageError, match="names no host"):
        parse_hostfile("# nothing\n\n", "hosts")


def test_there_is_an_end_to_how_many() -> None:
    assert len(names(f"n[1-{MOST_HOSTS}]")) == MOST_HOSTS
    with pytest.raises(UsageError, match="at most"):
        names(f"n[1-{MOST_HOSTS + 1}]")
    with pytest.raises(UsageError, match="at most"):
        names("n[1-99999999999]")


def test_a_product_of_very_many_ranges_is_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match="hosts or more: at most 4096"):
        parse_hostfile("n" + "[1-9]" * 5_000, "hosts")
