"""node: this node alone, its exit codes in each protocol, its deadline, and what a launcher has no say in."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.cli.main import run_command
from ncclcheck.cli.request import run_options
from ncclcheck.model.fact import Missing
from ncclcheck.timeouts import NODE_TIMEOUT_S
from tests.builders import cluster
from tests.cli.command_line import ncclcheck, saved_run
from tests.report.fleet.prometheus import value

UNREACHABLE = {
    "SLURM_JOB_ID": "7", "SLURM_NNODES": "4", "SLURM_PROCID": "2", "SLURM_NODEID": "2", "SLURM_NTASKS": "4",
    "SLURM_LOCALID": "0", "SLURM_JOB_NODELIST": "node[1-4]", "MASTER_ADDR": "192.0.2.1", "RANK": "2", "WORLD_SIZE": "4",
}  # fmt: skip


def test_it_ends_in_time_for_slurm_unless_told_otherwise() -> None:
    assert run_options("node", {}).timeout_s == NODE_TIMEOUT_S == 50
    assert run_options("node", {"timeout": 20.0}).timeout_s == 20


@pytest.mark.slow
def test_it_looks_at_this_node_alone_whatever_launcher_started_it(tmp_path: Path) -> None:
    done = ncclcheck(
        "node", "--format", "json", "--output", "n.prom", cwd=tmp_path, environ=UNREACHABLE | {"UMASK": "77"}
    )
    report = json.loads(done.out)
    assert report["command"] == "node"
    assert len(report["nodes"]) == 1
    assert done.code == report["verdict"]["exit_code"], done.err
    text = (tmp_path / "n.prom").read_text()
    assert value(text, "exit_code") == done.code
    assert value(text, "nodes", status="reported") == 1


def test_metrics_can_be_read_by_everybody_and_appear_whole(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", cluster(1))
    before = os.umask(0o077)
    try:
        done = ncclcheck("node", "--from", saved, "--output", "n.prom", cwd=tmp_path)
    finally:
        os.umask(before)
    assert done.code == 0, done
    assert (tmp_path / "n.prom").stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.prom", "run.json"]


def broken(folder: Path) -> str:
    """A saved run of a node without any shared memory to speak of: a finding at the gate."""
    snapshot = replace(cluster(1), expected_gpus_per_node=64)
    return saved_run(folder / "broken.json", snapshot)


@pytest.mark.parametrize(("protocol", "good", "bad", "unknown"), [("npd", 0, 1, 2), ("nagios", 0, 2, 3)])
def test_the_exit_codes_are_those_of_the_protocol(
    protocol: str, good: int, bad: int, unknown: int, tmp_path: Path
) -> None:
    node = ("node", "--format", protocol, "--quiet")
    saved = saved_run(tmp_path / "run.json", cluster(1))
    codes = {
        ncclcheck(*node, "--from", saved, cwd=tmp_path).code: good,
        ncclcheck(*node, "--from", broken(tmp_path), cwd=tmp_path).code: bad,
    }
    assert list(codes) == list(codes.values())
    for wrong in (
        ("--from", "nothing.json"),
        ("--no-such-option",),
        ("--timeout", "never"),
        ("--from", saved, "--require", "peer-filtered"),
        ("--from", saved, "--output", "no/such/folder.prom"),
        ("--from", saved, "--output", "/dev/full"),
    ):
        done = ncclcheck(*node, *wrong, cwd=tmp_path)
        assert done.code == unknown, (wrong, done)
        assert done.out.count("\n") == 1, (wrong, done)
        assert len(done.out) <= 81


def test_without_a_protocol_the_exit_codes_are_ours(tmp_path: Path) -> None:
    assert ncclcheck("node", "--from", broken(tmp_path), cwd=tmp_path).code == 1
    assert ncclcheck("node", "--no-such-option").code == 2


def test_a_fact_that_was_late_makes_it_inconclusive_and_is_named(tmp_path: Path) -> None:
    node = cluster(1).nodes[0]
    late = replace(node, facts=replace(node.facts, gpus=Missing("timeout", "NVML: no answer within 8 s")))
    saved = saved_run(tmp_path / "late.json", replace(cluster(1), nodes=(late,)))
    done = ncclcheck("node", "--from", saved, "--format", "json")
    assert done.code == 3, done.out
    (reason,) = json.loads(done.out)["verdict"]["reasons"]
    assert reason == f"facts of {node.host} that did not come in time: gpus (NVML: no answer within 8 s)"
    assert ncclcheck("node", "--from", saved, "--select", "NC404").code == 3
    assert ncclcheck("node", "--from", saved, "--select", "NC701").code == 0  # which reads no GPUs
    assert ncclcheck("preflight", "--from", saved).code == 0  # whose --require says what must have run


@pytest.mark.parametrize(("protocol", "code"), [("npd", 2), ("nagios", 3)])
def test_a_bug_of_ours_is_unknown_wherever_it_is(
    protocol: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    saved = saved_run(tmp_path / "run.json", cluster(1))
    for place in ("deliver", "ended_run"):
        monkeypatch.setattr(f"ncclcheck.cli.commands.session.{place}", broken_function)
        assert run_command(["node", "--format", protocol, "--from", saved]) == code
        line = capsys.readouterr().out
        assert "a bug in ncclcheck: ZeroDivisionError" in line
        assert line.count("\n") == 1


def broken_function(*_: object) -> None:
    raise ZeroDivisionError("of ours")


@pytest.mark.slow
def test_a_mount_that_hangs_does_not_make_it_late(tmp_path: Path) -> None:
    """A FIFO where a file is expected hangs whoever opens it; a time limit too short for any fact is kept as well."""
    fifo = tmp_path / "data"
    os.mkfifo(fifo)
    done = ncclcheck("node", "--data", str(fifo), "--format", "npd", "--timeout", "15", cwd=tmp_path)
    assert done.code in (0, 1, 2)
    assert done.seconds < 25
    short = ncclcheck("node", "--timeout", "0.02", "--format", "npd", cwd=tmp_path)
    assert short.code == 2, short
    assert short.out.count("\n") == 1
    assert short.seconds < 20
