"""The real NCCL library is found where torch would find it, and says what it would choose."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ncclcheck.facts.child import ChildResult
from ncclcheck.facts.nccl.nccl_child import MARK
from ncclcheck.facts.nccl.nccl_library import ask, find_library, inquire, understood
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclAnswer
from tests.facts.namespace import Namespace

_VARIABLE = "NCCLCHECK_TEST_NCCL_LIBRARIES"  # paths of libnccl.so.2, separated by colons


def _libraries() -> list[str]:
    named = [path for path in os.environ.get(_VARIABLE, "").split(":") if Path(path).is_file()]
    installed = find_library({})
    return sorted({*named, *([installed] if isinstance(installed, str) else [])})


_NONE = pytest.mark.skip(reason=f"no libnccl.so.2: pip install nvidia-nccl-cu12, or set {_VARIABLE}")
each_library = pytest.mark.parametrize("library", _libraries() or [pytest.param("", marks=_NONE)])
a_library = pytest.mark.parametrize("library", _libraries()[-1:] or [pytest.param("", marks=_NONE)])


def _answer(library: str, **environment: str) -> NcclAnswer:
    answer = ask(library, {"HOME": "/nonexistent", **environment}, 30)
    assert isinstance(answer, NcclAnswer), answer
    return answer


@each_library
def test_the_loopback_is_chosen_where_it_is_named_and_nothing_listens_afterwards(library: str) -> None:
    answer = _answer(library, NCCL_SOCKET_IFNAME="=lo")
    assert (answer.library, answer.result_code) == (library, 0)
    assert (answer.address, answer.interface) == ("127.0.0.1", "lo")
    assert answer.version.startswith("2.")
    assert answer.message.startswith("Bootstrap")
    assert answer.port is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", answer.port), timeout=5)


@each_library
def test_a_refusal_is_an_answer_with_nccls_own_words(library: str) -> None:
    answer = _answer(library, NCCL_SOCKET_IFNAME="=nosuch")
    assert answer.result_code in (3, 5)
    assert (answer.address, answer.interface, answer.port) == (None, None, None)
    assert "no socket interface found" in answer.message


@each_library
def test_the_users_own_log_is_not_touched(library: str, tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    conf = tmp_path / "nccl.conf"
    conf.write_text(f"NCCL_DEBUG_FILE={log}\nNCCL_DEBUG=VERSION\nNCCL_DEBUG_SUBSYS=COLL\n")
    settings = {"NCCL_DEBUG_FILE": str(log), "NCCL_DEBUG": "WARN", "NCCL_DEBUG_SUBSYS": "COLL"}
    assert _answer(library, NCCL_SOCKET_IFNAME="=lo", **settings).interface == "lo"
    assert _answer(library, NCCL_SOCKET_IFNAME="=lo", NCCL_CONF_FILE=str(conf)).interface == "lo"
    assert not log.exists()


@each_library
def test_a_config_file_decides_what_the_environment_leaves_open(library: str, tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_SOCKET_IFNAME==lo\n")
    assert _answer(library, NCCL_CONF_FILE=str(conf)).interface == "lo"


@each_library
def test_the_plugin_is_told_as_the_library_has_it(library: str, tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_NET_PLUGIN=from-file\n")
    home = {"HOME": "/nonexistent", "NCCL_SOCKET_IFNAME": "=lo"}
    assert inquire(library, home, 30).net_plugin is None
    in_file = {**home, "NCCL_CONF_FILE": str(conf)}
    assert inquire(library, in_file, 30).net_plugin == "from-file"
    assert inquire(library, {**in_file, "NCCL_NET_PLUGIN": "mine"}, 30).net_plugin == "mine"
    assert inquire(library, {**in_file, "NCCL_NET_PLUGIN": ""}, 30).net_plugin == ""


@each_library
@pytest.mark.lab
def test_a_node_with_docker_and_two_cards(library: str) -> None:
    with Namespace() as node:
        node.ip(
            "link set lo up",
            "link add docker0 type bridge",
            "addr add 172.17.0.1/16 dev docker0",
            "link add eth0 type veth peer name far0",
            "link add eth1 type veth peer name far1",
            *(f"link set {name} up" for name in ("docker0", "eth0", "eth1", "far0", "far1")),
            "addr add 10.0.0.1/24 dev eth0",
            "addr add 10.0.0.5/24 dev eth1 label eth1:5",
            "addr add fd00::1/64 dev eth1 nodad",
        )

        def chosen(**settings: str) -> tuple[str, str]:
            environ = {"HOME": "/nonexistent", **settings}
            answer = node.evaluate("nccl.nccl_library", f"ask({library!r}, {environ!r}, 30)")
            return answer["interface"], answer["address"]

        assert chosen() == ("eth0", "10.0.0.1")
        assert chosen(NCCL_SOCKET_IFNAME="^docker0") == ("lo", "127.0.0.1")
        assert chosen(NCCL_SOCKET_IFNAME="docker") == ("docker0", "172.17.0.1")
        assert chosen(NCCL_SOCKET_IFNAME="eth1") == ("eth1", "10.0.0.5")
        six = chosen(NCCL_SOCKET_IFNAME="eth1", NCCL_SOCKET_FAMILY="AF_INET6")
        assert six == ("eth1", "fd00::1")


@a_library
@pytest.mark.lab
def test_with_a_comm_id_the_address_is_the_local_one(library: str) -> None:
    with Namespace() as node:
        node.ip(
            "link add eth0 type veth peer name far0",
            "link set eth0 up",
            "link set far0 up",
            "addr add 10.0.0.1/24 dev eth0",
        )
        environ = {"HOME": "/nonexistent", "NCCL_COMM_ID": "10.0.0.9:5000"}
        answer = node.evaluate("nccl.nccl_library", f"ask({library!r}, {environ!r}, 30)")
    if answer["version"].startswith("2.29."):
        pytest.skip("NCCL 2.29 looks for an interface outside the subnet of NCCL_COMM_ID")
    assert (answer["interface"], answer["address"], answer["port"]) == ("eth0", "10.0.0.1", 5000)


def test_what_nccls_thread_logs_after_the_answer_is_no_part_of_it() -> None:
    answer = '{"version": 23007, "result": 2, "id": "", "error": "refused", "net_plugin": null}'
    log = f"\n{MARK}{answer}\nh:1:2 [0] NCCL INFO Socket handshake magic 0x56 (built-in default)\n"
    told = understood("libnccl.so.2", ChildResult(0, log.encode(), b"")).answer
    assert isinstance(told, NcclAnswer)
    assert told.version == "2.30.7"


def test_a_file_that_is_no_library_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "libnccl.so.2"
    path.write_text("<html>404</html>")
    answer = ask(str(path), {}, 30)
    assert isinstance(answer, Missing)
    assert answer.missing == "error"
    assert str(path) in answer.detail


@pytest.fixture
def compile_library(tmp_path: Path) -> Callable[[str], str]:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build a library that misbehaves")

    def build(source: str) -> str:
        (tmp_path / "fake.c").write_text(source)
        library = str(tmp_path / "libnccl.so.2")
        command = [compiler, "-shared", "-fPIC", "-o", library, str(tmp_path / "fake.c")]
        subprocess.run(command, check=True, timeout=60)
        return library

    return build


_VERSION = "int ncclGetVersion(int *version) { *version = 22809; return 0; }\n"


def test_another_library_under_that_name_is_unsupported(compile_library: Callable[[str], str]) -> None:
    answer = ask(compile_library("int nothing(void) { return 0; }"), {}, 30)
    assert isinstance(answer, Missing)
    assert answer.missing == "unsupported"


@pytest.mark.slow
def test_a_library_that_hangs_is_given_up(compile_library: Callable[[str], str]) -> None:
    source = _VERSION + "#include <unistd.h>\nint ncclGetUniqueId(void *id) { for (;;) pause(); }"
    answer = ask(compile_library(source), {}, 1.0)
    assert isinstance(answer, Missing)
    assert answer.missing == "timeout"


def test_a_library_that_crashes_is_an_error(compile_library: Callable[[str], str]) -> None:
    source = _VERSION + "#include <stdlib.h>\nint ncclGetUniqueId(void *id) { abort(); }"
    answer = ask(compile_library(source), {}, 30)
    assert isinstance(answer, Missing)
    assert answer.missing == "error"
    assert "-6" in answer.detail


def test_a_library_that_says_nothing_of_its_choice_still_gives_the_address(
    compile_library: Callable[[str], str],
) -> None:
    source = (
        _VERSION + "#include <string.h>\nint ncclGetUniqueId(char *id) {\n"
        '  memset(id, 0, 128); memcpy(id + 8, "\\2\\0\\37\\220\\12\\0\\0\\1", 8); return 0; }'
    )
    answer = ask(compile_library(source), {}, 30)
    assert isinstance(answer, NcclAnswer)
    assert (answer.address, answer.port, answer.interface) == ("10.0.0.1", 8080, None)


def _put(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return str(path)


def test_the_wheel_on_the_python_path_comes_before_ld_library_path(tmp_path: Path) -> None:
    wheel = _put(tmp_path / "site" / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    elsewhere = _put(tmp_path / "opt" / "libnccl.so.2")
    environ = {"LD_LIBRARY_PATH": f"{tmp_path}/nothing:{tmp_path}/opt"}
    assert find_library(environ, [str(tmp_path / "site")]) == wheel
    assert find_library(environ, [str(tmp_path / "nothing")]) == elsewhere


def test_a_preloaded_library_comes_first(tmp_path: Path) -> None:
    site = tmp_path / "site"
    _put(site / "nvidia" / "nccl" / "lib" / "libnccl.so.2")
    mine = _put(tmp_path / "mine" / "libnccl.so.2.99")
    assert find_library({"LD_PRELOAD": f"/usr/lib/libjemalloc.so {mine}"}, [str(site)]) == mine
    by_name = {"LD_PRELOAD": "libjemalloc.so:libnccl.so.2.99", "LD_LIBRARY_PATH": str(tmp_path / "mine")}
    assert find_library(by_name, [str(site)]) == mine


def test_a_torch_that_brings_its_own_library_is_believed(tmp_path: Path) -> None:
    own = _put(tmp_path / "torch" / "lib" / "libnccl-6b2e1f4d.so.2")
    _put(tmp_path / "torch" / "__init__.py")
    assert find_library({}, [str(tmp_path)]) == own
