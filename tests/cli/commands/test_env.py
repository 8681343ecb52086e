"""`ncclcheck env`: lines for a shell, from a report or a run."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from ncclcheck.report.document import to_json
from tests.cli.command_line import ncclcheck, refused, saved_run
from tests.report.reports import ADVICE, found, mtu_finding, report


def test_the_settings_of_a_report_are_export_lines(tmp_path: Path) -> None:
    made = report([found(mtu_finding())], advice=ADVICE)
    (tmp_path / "report.json").write_text(to_json(made))
    done = ncclcheck("env", "--from", str(tmp_path / "report.json"))
    assert done.code == 0
    assert "export NCCL_SOCKET_IFNAME='=eth0'\n" in done.out
    assert "mtu-differs on node[02-03]" in done.err
    as_json = ncclcheck("env", "--from", str(tmp_path / "report.json"), "--format", "json")
    assert json.loads(as_json.out)["env"][0]["value"] == "=eth0"


def test_a_report_of_a_stranger_sets_nothing_that_runs_something(tmp_path: Path) -> None:
    settings = [
        replace(ADVICE.env[0], name=name, value=value)
        for name, value in (("LD_PRELOAD", "/tmp/evil.so"), ("A=1; touch owned; B", "1"), ("PATH", None))
    ]
    made = report(advice=replace(ADVICE, env=(*settings, *ADVICE.env)))
    (tmp_path / "report.json").write_text(to_json(made))
    for name in ("sh", "json", "docker", "slurm", "k8s"):
        done = ncclcheck("env", "--from", str(tmp_path / "report.json"), "--format", name)
        assert done.code == 0
        assert "eth0" in done.out
        assert not any(word in done.out for word in ("LD_PRELOAD", "touch", "PATH"))
        assert done.err.count("left out of the advice") == 3


def test_the_same_settings_for_what_starts_containers_and_jobs(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(to_json(report(advice=ADVICE)))
    wanted = {
        "docker": "NCCL_SOCKET_IFNAME==eth0",
        "slurm": "export NCCL_SOCKET_IFNAME='=eth0'",
        "k8s": '    value: "=eth0"',
    }
    for name, expected in wanted.items():
        done = ncclcheck("env", "--from", str(tmp_path / "report.json"), "--format", name)
        assert done.code == 0
        assert expected in done.out.splitlines()
    assert "'toml' is not one of" in refused(ncclcheck("env", "--format", "toml"))


def test_a_saved_run_is_judged_first(tmp_path: Path) -> None:
    done = ncclcheck("env", "--from", saved_run(tmp_path / "run.json"))
    assert done.code == 0
    assert all(line.startswith(("#", "export ", "unset ", "case ")) for line in done.out.splitlines())


def test_no_file_is_wrong_usage() -> None:
    assert "there is no such file" in refused(ncclcheck("env", "--from", "nothing"))
