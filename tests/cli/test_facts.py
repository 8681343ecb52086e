"""`ncclcheck facts`: this node as a document that --from takes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import ncclcheck
from tests.facts.trees import HCA, roce_machine


def test_the_facts_of_this_machine_can_be_replayed(tmp_path: Path) -> None:
    done = ncclcheck("facts", "--format", "json", environ={"MY_TOKEN": "hunter2", "NCCL_DEBUG": "INFO"})
    assert done.code == 0, done
    document = json.loads(done.out)
    assert list(document) == ["schema_version", "host", "facts"]
    assert any(one["name"] == "lo" for one in document["facts"]["interfaces"])
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
