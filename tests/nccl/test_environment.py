"""Where NCCL has a value from: the environment, one user file, /etc/nccl.conf, by the rules of each version."""

from __future__ import annotations

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile
from ncclcheck.nccl.environment import effective, source_of, unknown_file

NAME = "NCCL_SOCKET_IFNAME"


def file(path: str, value: str) -> NcclConfigFile:
    return NcclConfigFile(path, {NAME: value})


HOME = file("/home/me/.nccl.conf", "home")
PASSWD = file("/users/me/.nccl.conf", "passwd")
NAMED = file("/cluster/nccl.conf", "named")
SYSTEM = file("/etc/nccl.conf", "system")


def test_the_process_environment_wins_even_when_empty() -> None:
    assert effective({NAME: ""}, [HOME, SYSTEM])[NAME] == ""


def test_the_users_file_wins_over_the_systems() -> None:
    assert effective({}, [HOME, SYSTEM])[NAME] == "home"
    assert effective({}, [SYSTEM])[NAME] == "system"


def test_nccl_conf_file_takes_the_place_of_the_home_file_from_2_23() -> None:
    environment = {"NCCL_CONF_FILE": NAMED.path}
    assert effective(environment, [NAMED, HOME, SYSTEM], "2.23.4")[NAME] == "named"
    assert effective(environment, [NAMED, HOME, SYSTEM], "2.22.3")[NAME] == "home"


def test_a_missing_named_file_does_not_lead_back_to_the_home_file_but_an_empty_name_does() -> None:
    assert effective({"NCCL_CONF_FILE": "/no/such"}, [HOME, SYSTEM])[NAME] == "system"
    assert effective({"NCCL_CONF_FILE": ""}, [HOME, SYSTEM])[NAME] == "home"


def test_the_home_is_the_passwd_entry_up_to_2_29_and_the_variable_since_2_30() -> None:
    assert effective({}, [HOME, PASSWD, SYSTEM], "2.29.7")[NAME] == "passwd"
    assert effective({}, [HOME, PASSWD, SYSTEM], "2.30.3")[NAME] == "home"
    assert effective({}, [PASSWD, SYSTEM], "2.30.3", home_set=False)[NAME] == "system"


def test_a_carriage_return_is_part_of_the_value_before_2_30() -> None:
    assert effective({}, [file("/etc/nccl.conf", "eth0\r")], "2.29.7")[NAME] == "eth0\r"
    assert effective({}, [file("/etc/nccl.conf", "eth0\r")], "2.30.3")[NAME] == "eth0"


def test_a_file_that_is_not_there_is_no_setting_and_no_doubt() -> None:
    absent = NcclConfigFile("/home/me/.nccl.conf", Missing("absent", "no such file"))
    assert effective({}, [absent, SYSTEM])[NAME] == "system"
    assert unknown_file({}, [absent, SYSTEM]) is None


def test_a_file_that_could_not_be_read_in_time_is_a_doubt() -> None:
    slow = NcclConfigFile("/home/me/.nccl.conf", Missing("timeout", "no answer in 2 s"))
    assert unknown_file({}, [slow, SYSTEM]) == Missing("timeout", "/home/me/.nccl.conf: no answer in 2 s")


def test_an_old_nccl_with_an_unread_home_file_is_a_doubt() -> None:
    environment = {"NCCL_CONF_FILE": NAMED.path}
    assert unknown_file(environment, [NAMED, SYSTEM], "2.21.5") is not None
    assert unknown_file(environment, [NAMED, SYSTEM], "2.23.4") is None


def test_the_source_of_a_value_is_named() -> None:
    assert source_of(NAME, {NAME: "eth0"}, [HOME]) == "environment"
    assert source_of(NAME, {}, [HOME, SYSTEM]) == HOME.path
    assert source_of("NCCL_DEBUG", {}, [HOME, SYSTEM]) is None
