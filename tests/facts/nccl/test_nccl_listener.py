"""NCCL's own listener is kept open, takes calls that NCCL never sees, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ncclcheck.facts.nccl.nccl_listener import NcclListener, is_callable, listening_sockets
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclAnswer
from tests.facts.compiled import needs_compiler, shared_library

# A library that listens as NCCL does: on a free port of a routable address of the machine, in a thread.
_LISTENS = r"""
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int ncclGetVersion(int *version) { *version = 22809; return 0; }
int ncclGetUniqueId(char *id) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) }, own = { .sin_family = AF_INET };
    socklen_t length = sizeof own;
    inet_pton(AF_INET, ADDRESS, &own.sin_addr);
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(one, (struct sockaddr *)&own, sizeof own) || listen(one, 16384)) return 2;
    getsockname(one, (struct sockaddr *)&own, &length);
    memset(id, 0, 128);
    memcpy(id + 8, &own, sizeof own);
    return 0;
}
"""


def own_address() -> str:
    """An address of this machine that others could call."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))  # sends nothing; the kernel picks the source address
        except OSError:
            pytest.skip("this machine has no route to anywhere")
        return str(one.getsockname()[0])


def listening_library(folder: Path, address: str) -> str:
    return shared_library(folder / "libnccl.so.2", _LISTENS, f'-DADDRESS="{address}"')


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


def test_sockets_are_read_as_the_kernel_has_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as four:
        assert four.getsockname() in listening_sockets(os.getpid())
    if socket.has_ipv6:
        try:
            six = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:
            pytest.skip("this machine has no ::1")
        with six:
            assert ("::1", six.getsockname()[1]) in listening_sockets(os.getpid())
    assert listening_sockets(2**22 + 1) == ()


@pytest.mark.parametrize(
    ("address", "callable_"),
    [("10.0.0.1", True), ("fd00::1", True), ("127.0.0.1", False), ("::1", False), ("fe80::1", False)],
)
def test_which_addresses_others_can_call(address: str, callable_: bool) -> None:
    assert is_callable(address) is callable_


@needs_compiler
def test_the_listener_stays_until_it_is_closed_and_takes_more_than_a_full_job_of_calls(
    tmp_path: Path,
) -> None:
    address = own_address()
    listener = NcclListener()
    answer = listener.inquire(listening_library(tmp_path, address), {}, 20).answer
    assert isinstance(answer, NcclAnswer)
    listening = listener.listening()
    assert listening is not None
    assert (listening.address, listening.port) == (address, answer.port)
    calls = [
        socket.create_connection((listening.address, listening.port), timeout=5)
        for _ in range(min(listening.room, 100))
    ]
    for call in calls:
        call.close()
    listener.close()
    assert listener.listening() is None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((listening.address, listening.port), timeout=5)


@needs_compiler
def test_a_library_that_listens_for_itself_only_is_not_kept(tmp_path: Path) -> None:
    listener = NcclListener()
    answer = listener.inquire(listening_library(tmp_path, "127.0.0.1"), {}, 20).answer
    assert isinstance(answer, NcclAnswer)
    assert listener.listening() is None
    listener.close()
    assert answer.port is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", answer.port), timeout=5)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("body", "kind"), [("for (;;) pause();", "timeout"), ("abort();", "error")], ids=["hangs", "crashes"]
)
def test_a_library_that_gives_no_answer_is_not_kept(tmp_path: Path, body: str, kind: str) -> None:
    source = (
        "#include <stdlib.h>\n#include <unistd.h>\nint ncclGetVersion(int *version) { return 0; }\n"
        f"int ncclGetUniqueId(void *id) {{ {body} }}"
    )
    listener = NcclListener()
    answer = listener.inquire(shared_library(tmp_path / "libnccl.so.2", source), {}, 1.0).answer
    assert isinstance(answer, Missing)
    assert answer.missing == kind
    assert listener.listening() is None
    listener.close()


def test_a_file_that_is_no_library_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "libnccl.so.2"
    path.write_text("<html>404</html>")
    listener = NcclListener()
    answer = listener.inquire(str(path), {}, 20).answer
    assert isinstance(answer, Missing)
    assert (answer.missing, str(path) in answer.detail) == ("error", True)
    listener.close()


def test_a_listener_that_was_never_asked_can_be_closed() -> None:
    listener = NcclListener()
    assert listener.listening() is None
    listener.close()


_KEEPS = """
import os, sys, threading
from ncclcheck.facts.nccl.nccl_listener import NcclListener
listener = NcclListener()
asking = threading.Thread(target=listener.inquire, args=(sys.argv[1], {}, 20))  # a thread that ends
asking.start(); asking.join()
assert listener.listening() is not None
print(listener._process.pid, flush=True)
os.execv("/bin/sh", ["sh", "-c", "exit 0"]) if sys.argv[2] == "exec" else sys.stdin.read()
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("how", ["kill", "exec"])
def test_nothing_outlives_the_process_that_keeps_it(tmp_path: Path, how: str) -> None:
    library = listening_library(tmp_path, own_address())
    argv = [sys.executable, "-c", _KEEPS, library, how]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        pid = int(keeper.stdout.readline())
        if how == "kill":
            keeper.kill()
        keeper.wait(20)
    assert gone(pid)
