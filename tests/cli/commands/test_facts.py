"""`ncclcheck facts`: this node as a document that --from takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import ncclcheck
from tests.facts.trees import HCA, roce_machine


def test_the_facts_of_this_machine_can_be_replayed(tmp_path: Path) -> None:
    done = ncclcheck("facts", "--format", "json", environ={"MY_TOKEN": "hunter2", "NCCL_DEBUG": "INFO"})
    assert done.code == 0, done
    document = json.loads(done.out)
    assert list(document) == ["schema_version", "host", "facts"]
    assert any(interface["name"] == "lo" for interface in document["facts"]["interfaces"])
    assert document["facts"]["environment"]["NCCL_DEBUG"] == "INFO"
    assert "hunter2" not in done.out
    (tmp_path / "facts.json").write_text(done.out)
    replayed = ncclcheck("preflight", "--from", str(tmp_path / "facts.json"))
    assert replayed.code in (0, 1)
    assert replayed.out.splitlines()[-1].startswith(f"exit {replayed.code}: ")


def test_a_recorded_machine_is_read_as_if_it_were_this_one(tmp_path: Path) -> None:
    roce_machine(tmp_path / "node42")
    done = ncclcheck("facts", "--root", str(tmp_path / "node42"), environ={"NCCL_DEBUG": "INFO"})
    assert done.code == 0, done
    document = json.loads(done.out)
    assert list(document) == ["schema_version", "host", "facts"]
    assert document["host"] == "node42"
    (port,) = document["facts"]["rdma"]["ports"]
    assert (port["device"], port["pci"]) == ("mlx5_0", HCA)
    assert document["facts"]["environment"]["missing"] == "absent"
    assert "NCCL_DEBUG" not in done.out
    (tmp_path / "facts.json").write_text(done.out)
    replayed = ncclcheck("preflight", "--from", str(tmp_path / "facts.json"))
    assert replayed.out.splitlines()[-1].startswith(f"exit {replayed.code}: ")
    assert replayed.code in (0, 1, 3)


def test_a_root_that_is_no_folder_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("nothing", "file"):
        done = ncclcheck("facts", "--root", str(tmp_path / name))
        assert done.code == 2
        assert f"--root {tmp_path / name}: " in done.err
    done = ncclcheck("facts", "--root", str(tmp_path), "--code", ".")
    assert done.code == 2
    assert "--code" in done.err


def test_data_and_shared_folders_are_looked_at_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "shard.bin").write_bytes(b"x" * 10)
    shared = tmp_path / "shared"
    shared.mkdir()
    done = ncclcheck("facts", "--data", str(tmp_path), "--shared-dir", str(shared), "--code", str(tmp_path))
    paths = {load["purpose"]: load for load in json.loads(done.out)["facts"]["paths"]}
    assert set(paths) == {"data", "shared", "code"}
    assert paths["data"]["manifest"]["files"] == 1
    assert paths["data"]["manifest"]["sample"][0]["size_bytes"] == 10
    assert (paths["shared"]["kind"], paths["shared"]["listed"]) == ("folder", True)
    assert list(shared.iterdir()) == []
    for option in ("--data", "--shared-dir"):
        done = ncclcheck("facts", "--root", str(tmp_path), option, str(tmp_path))
        assert (done.code, option in done.err) == (2, True)


@pytest.mark.slow
@pytest.mark.further
def test_a_node_meets_the_policy_that_it_wrote(tmp_path: Path) -> None:
    environ = {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_FAMILY": "AF_INET"}
    written = ncclcheck("facts", "--as-policy", environ=environ)
    assert (written.code, written.err) == (0, "")
    assert 'NCCL_SOCKET_FAMILY = "AF_INET"' in written.out
    policy = tmp_path / "good.toml"
    policy.write_text(written.out)
    judges = "software-unexpected,env-unexpected,node-unexpected"
    done = ncclcheck("preflight", "--expect", str(policy), "--select", judges, "-v", environ=environ)
    assert done.code == 0, done.out
    assert done.out.count("passed  NC") == 3
    other = ncclcheck(
        "preflight", "--expect", str(policy), "--select", judges, environ={"NCCL_DEBUG": "WARN"}
    )
    assert other.code == 1
    assert f"{policy}, line" in other.out


def test_the_facts_of_several_nodes_are_compared_without_a_connection(tmp_path: Path) -> None:
    files = []
    for host, rate in (("node01", "400 Gb/sec (4X NDR)"), ("node02", "200 Gb/sec (4X HDR)")):
        roce_machine(tmp_path / host)
        (port,) = (tmp_path / host).glob("sys/devices/**/infiniband/mlx5_0/ports/1/rate")
        port.write_text(f"{rate}\n")
        files.append(tmp_path / f"{host}.json")
        files[-1].write_text(ncclcheck("facts", "--root", str(tmp_path / host)).out)
    merged = ncclcheck("facts", "merge", *map(str, files))
    assert merged.code == 0, merged
    (tmp_path / "run.json").write_text(merged.out)
    report = json.loads(ncclcheck("preflight", "--from", str(tmp_path / "run.json"), "--format", "json").out)
    assert [(node["host"], node["node_rank"]) for node in report["nodes"]] == [("node01", 0), ("node02", 1)]
    outcome = {check["slug"]: check["outcome"] for check in report["checks"]}
    assert outcome["rdma-rate-differs"] == "found"
    assert outcome["peer-filtered"] == "unknown"


def test_files_that_are_not_the_facts_of_different_nodes_are_refused(tmp_path: Path) -> None:
    roce_machine(tmp_path / "node01")
    facts = tmp_path / "facts.json"
    facts.write_text(ncclcheck("facts", "--root", str(tmp_path / "node01")).out)
    twice = ncclcheck("facts", "merge", str(facts), str(facts))
    assert (twice.code, "node01 is there twice" in twice.err) == (2, True)
    (tmp_path / "run.json").write_text(ncclcheck("facts", "merge", str(facts)).out)
    saved = ncclcheck("facts", "merge", str(tmp_path / "run.json"))
    assert (saved.code, "not the facts of a node" in saved.err) == (2, True)
    assert ncclcheck("facts", "merge").code == 2
