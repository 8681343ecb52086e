"""The rules are found by walking the package."""

from __future__ import annotations

from pathlib import Path

from ncclcheck.facts.checkpoints.kinds import all_kinds
from ncclcheck.facts.checkpoints.kinds.all_kinds import all_rules


def test_every_file_with_rules_is_found() -> None:
    declaring = [
        file for file in Path(all_kinds.__file__).parent.glob("*.py") if "\nRULES:" in file.read_text()
    ]
    assert {rule.__module__.rpartition(".")[2] for rule in all_rules()} == {file.stem for file in declaring}
    assert len(declaring) >= 8
