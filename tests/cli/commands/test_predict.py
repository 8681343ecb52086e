"""`ncclcheck predict`: the answer of the library, or the rules of the versions asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import cluster, everywhere, without
from tests.cli.command_line import ncclcheck, refused, saved_run
from tests.nccl.hardware import rdma, roce


def test_a_saved_run_tells_what_each_library_answered(tmp_path: Path) -> None:
    done = ncclcheck("predict", "--from", saved_run(tmp_path / "run.json"), "--format", "json")
    assert done.code == 0
    entries = json.loads(done.out)["nccl"]
    assert [(entry["host"], entry["interface"], entry["address"], entry["source"]) for entry in entries] == [
        (f"node{number:02}", "eth0", f"10.0.0.{number}", "asked") for number in range(1, 5)
    ]


def test_versions_are_predicted_one_by_one_even_where_the_library_answered(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", cluster(1))
    done = ncclcheck(
        "predict", "--from", saved, "--nccl-version", "2.18.5", "--nccl_version", "2.28.9", "--format", "json"
    )
    entries = json.loads(done.out)["nccl"]
    assert [(entry["version"], entry["source"]) for entry in entries] == [
        ("2.18.5", "predicted"),
        ("2.28.9", "predicted"),
    ]


def test_people_get_words(tmp_path: Path) -> None:
    done = ncclcheck("predict", "--from", saved_run(tmp_path / "run.json", cluster(1)))
    assert "eth0 10.0.0.1 on node01 (NCCL 2.27.5, asked of the library itself)" in done.out


def test_what_is_not_known_is_said_and_not_guessed(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", without(cluster(2), "node02", "nccl"))
    done = ncclcheck("predict", "--from", saved, "--format", "json")
    assert done.code == 3
    assert [load["host"] for load in json.loads(done.out)["nccl"]] == ["node01"]
    assert "node02: what NCCL would choose is not known" in done.err


def test_a_version_that_is_none_is_refused(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json")
    told = refused(ncclcheck("predict", "--from", saved, "--nccl-version", "two"))
    assert told == "--nccl-version 'two' is no NCCL version: a version looks like 2.28.9"
    assert "--nccl-version ''" in refused(ncclcheck("predict", "--from", saved, "--nccl-version", ""))


def test_a_version_whose_rules_were_never_read_is_predicted_with_that_said(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", cluster(1))
    done = ncclcheck("predict", "--from", saved, "--nccl-version", "2.99.1", "--nccl-version", "2.14")
    assert "2.99.1 is newer than 2.32.3, whose rules these are" in done.out
    assert "2.14 is older than 2.18.1, whose rules these are" in done.out


def test_network_and_hcas_follow_the_version(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "run.json", everywhere(cluster(1), rdma=rdma(roce())))
    done = ncclcheck(
        "predict", "--from", saved, "--nccl-version", "2.20.5", "--nccl-version", "2.28.9", "--format", "json"
    )
    entries = json.loads(done.out)["nccl"]
    assert [(entry["network"], entry["hcas"]) for entry in entries] == [
        ("IB", [{"device": "mlx5_0", "port": 1, "gid_index": 0}]),
        ("IB", [{"device": "mlx5_0", "port": 1, "gid_index": 3}]),
    ]
    assert "NCCL 2.20.5 would use IB with mlx5_0:1 (GID 0)" in entries[1]["changes"]


@pytest.mark.parametrize("arguments", [(), ("--nccl-version", "2.28.9")])
def test_a_recorded_machine_has_no_interface_and_does_not_fail(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    tree = tmp_path / "machine"
    for name, text in (("sys/class/net/eth0/operstate", "up"), ("sys/class/net/eth0/flags", "0x1003")):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    facts = ncclcheck("facts", "--root", str(tree))
    (tmp_path / "facts.json").write_text(facts.out)
    done = ncclcheck("predict", "--from", str(tmp_path / "facts.json"), *arguments, "--format", "json")
    (entry,) = json.loads(done.out)["nccl"]
    assert done.code == 0
    assert (entry["interface"], entry["address"], entry["network"]) == (None, None, "Socket")
    assert not entry["fails"]
    assert "the facts hold no addresses" in entry["reason"]
