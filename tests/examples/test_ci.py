"""The files for GitHub Actions and GitLab CI: valid by the published schemas, and what they run is real."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_line import ncclcheck

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = tuple(EXAMPLES / name for name in ("ci/github-image.yml", "ci/gitlab-image.yml", "docker/Dockerfile"))


@pytest.mark.parametrize(
    ("file", "schema"),
    [("github-image.yml", "vendor.github-workflows"), ("gitlab-image.yml", "vendor.gitlab-ci")],
)
def test_it_is_valid_by_the_published_schema(file: str, schema: str) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(EXAMPLES / "ci" / file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_check_of_the_schema_can_fail(tmp_path: Path) -> None:
    broken = tmp_path / "github-image.yml"
    broken.write_text((EXAMPLES / "ci" / "github-image.yml").read_text().replace("runs-on", "runs_on"))
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        str(broken),
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def lines_of(example: Path) -> list[list[str]]:
    """The words of each line that calls ncclcheck, from `ncclcheck` on, continued lines joined."""
    text = example.read_text().replace("\\\n", " ")
    found = [line.split("ncclcheck ", 1)[1] for line in text.splitlines() if _calls(line)]
    return [words.split() for words in found]


def _calls(line: str) -> bool:
    return "ncclcheck preflight" in line and not line.lstrip().startswith("#")


CALLS = [
    pytest.param(
        words,
        id=f"{example.name}-{number}",
        marks=() if example.name == "Dockerfile" else pytest.mark.further,
    )
    for example in (
        EXAMPLES / "ci" / "github-image.yml",
        EXAMPLES / "ci" / "gitlab-image.yml",
        EXAMPLES / "docker" / "Dockerfile",
    )
    for number, words in enumerate(lines_of(example))
]


def test_every_file_calls_ncclcheck() -> None:
    assert len(CALLS) == 3


@pytest.mark.slow
@pytest.mark.parametrize("words", CALLS)
def test_what_it_runs_is_understood_and_writes_its_files(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = [word.replace("/reports/", "").replace("/var/log/", "") for word in words]
    ended = ncclcheck(*here)
    written = [here[place + 1] for place, word in enumerate(here) if word == "--output"]
    assert ended.code in {0, 1}, ended  # 1: an environment without NCCL is not fit for NCCL
    assert all((tmp_path / name).stat().st_size > 0 for name in written)
    assert written


def test_the_summary_and_the_artifacts_are_files_that_the_check_writes() -> None:
    github: dict[str, Any] = yaml.safe_load((EXAMPLES / "ci" / "github-image.yml").read_text())
    steps = {step.get("name"): step.get("run", "") for step in github["jobs"]["image"]["steps"]}
    assert "/reports/image.md" in steps["Check"]
    assert "reports/image.md" in steps["Summary"]
    gitlab: dict[str, Any] = yaml.safe_load((EXAMPLES / "ci" / "gitlab-image.yml").read_text())
    job = gitlab["check-image"]
    for name in (job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]):
        assert f"--output {name}" in job["script"][0]
