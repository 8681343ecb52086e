"""`ncclcheck facts`: this node as a document that --from takes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commands import ncclcheck


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
