"""NCCL's config files: which are looked at, and what NCCL would take from them."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from ncclcheck.facts.kept_environment import REDACTED
from ncclcheck.facts.nccl.nccl_config import read_config_files, settings_in
from ncclcheck.model.fact import Missing

_PASSWD_HOME = pwd.getpwuid(os.getuid()).pw_dir


def test_lines_are_read_as_nccl_reads_them() -> None:
    text = (
        "# NCCL_DEBUG=INFO\n"
        "NCCL_SOCKET_IFNAME==eth0\n"
        "NCCL_SOCKET_IFNAME=eth1\n"
        " NCCL_IB_HCA=mlx5_0\n"
        "export NCCL_NET=Socket\n"
        "NCCL_ALGO=Ring  \n"
        'NCCL_PROTO="Simple"\n'
        "NCCL_CRLF=eth0\r\n"
        "NCCL_EMPTY=\n"
        "NCCL_NOTHING\n"
        "PATH=/nowhere\n"
        "NCCL_LAST=1"
    )
    assert settings_in(text) == {
        "NCCL_SOCKET_IFNAME": "=eth0",
        "NCCL_ALGO": "Ring  ",
        "NCCL_PROTO": '"Simple"',
        "NCCL_CRLF": "eth0\r",
        "NCCL_EMPTY": "",
        "NCCL_LAST": "1",
        " NCCL_IB_HCA": "mlx5_0",  # names of their own, which nobody reads
        "export NCCL_NET": "Socket",
    }


def test_secrets_do_not_leave_by_this_door_either() -> None:
    text = "NCCL_API_TOKEN=abc\nNCCL_NET_PLUGIN=http://a:b@c/\n"
    assert settings_in(text) == {"NCCL_NET_PLUGIN": REDACTED}


def test_the_home_of_the_environment_comes_before_that_of_the_passwd_entry(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_DEBUG=WARN\n")
    home, passwd, system = read_config_files({"HOME": str(tmp_path)}, tmp_path / "etc")
    assert (home.path, home.settings) == (f"{tmp_path}/.nccl.conf", {"NCCL_DEBUG": "WARN"})
    assert passwd.path == f"{_PASSWD_HOME}/.nccl.conf"
    assert system.path == f"{tmp_path}/etc/nccl.conf"
    assert isinstance(system.settings, Missing)
    assert system.settings.missing == "absent"


def test_one_home_is_listed_once(tmp_path: Path) -> None:
    paths = [file.path for file in read_config_files({"HOME": _PASSWD_HOME}, tmp_path)]
    assert paths == [f"{_PASSWD_HOME}/.nccl.conf", f"{tmp_path}/nccl.conf"]


def test_a_named_file_comes_first_and_is_listed_even_when_it_is_missing(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "NCCL_CONF_FILE": str(tmp_path / "none")}
    named, *homes, system = read_config_files(environ, tmp_path)
    assert named.path == f"{tmp_path}/none"
    assert isinstance(named.settings, Missing)
    # NCCL before 2.23 does not know the variable and still reads the home's file.
    assert [home.path for home in homes] == [f"{tmp_path}/.nccl.conf", f"{_PASSWD_HOME}/.nccl.conf"]
    assert system.path == f"{tmp_path}/nccl.conf"


def test_an_empty_name_of_a_file_counts_as_unset(tmp_path: Path) -> None:
    first, *_ = read_config_files({"HOME": str(tmp_path), "NCCL_CONF_FILE": ""}, tmp_path)
    assert first.path == f"{tmp_path}/.nccl.conf"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "conf")
    first, *_ = read_config_files({"NCCL_CONF_FILE": str(tmp_path / "conf")}, tmp_path)
    assert first.settings == Missing("unsupported", f"{tmp_path}/conf is not a regular file")
