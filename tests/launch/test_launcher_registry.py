"""Every launcher, walked: what one record declares is known to detection, facts, checks, the report and the docs."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re

import pytest
from msgspec.structs import replace

from ncclcheck.checks.environment._variables import differs_by_nature
from ncclcheck.facts.kept_environment import REDACTED, read_environment
from ncclcheck.launch import launchers
from ncclcheck.launch.launcher import Launcher
from ncclcheck.launch.launcher_registry import (
    all_launchers,
    commands,
    differs_by_rank,
    is_set_by_a_launcher,
    label_of,
    modules,
    node_count_source,
    remote_starters,
)
from ncclcheck.report.text.terminal import render
from tests.builders import cluster, with_facts
from tests.fact_builders import launch
from tests.report.reports import report
from tests.test_architecture import ROOT

FILES = [info.name for info in pkgutil.iter_modules(launchers.__path__)]
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Za-z0-9]+)+")
JOB_WIDE = frozenset(
    {"MASTER_ADDR", "MASTER_PORT"}
)  # the same on every node: where they differ, something is wrong
DETECTING = [found for found in all_launchers() if found.detect or found.describe_job]


def names_read_in(file: str) -> set[str]:
    """The names of variables that stand in the file of a launcher as words of their own."""
    module = importlib.import_module(f"{launchers.__name__}.{file}")
    constants = {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {text for text in constants if VARIABLE.fullmatch(text)} - JOB_WIDE


def examples(launcher: Launcher) -> list[str]:
    """Each variable of the launcher by a full name."""
    return [pattern.replace("*", "SIZE") for pattern in launcher.variables]


@pytest.mark.parametrize("file", FILES)
def test_every_variable_that_detection_reads_is_among_the_facts(file: str) -> None:
    environ = dict.fromkeys(names_read_in(file) - {"SLURM_TASK_PID"}, "7")
    assert read_environment(environ) == environ


@pytest.mark.parametrize("file", FILES)
def test_and_may_differ_between_nodes(file: str) -> None:
    assert [name for name in sorted(names_read_in(file)) if not differs_by_nature(name)] == []


@pytest.mark.parametrize("launcher", all_launchers(), ids=lambda launcher: launcher.name)
def test_what_differs_between_the_ranks_of_a_node_may_differ_between_nodes(launcher: Launcher) -> None:
    for pattern in launcher.rank_variables:
        name = pattern.replace("*", "RANK")
        assert differs_by_rank(name)
        assert is_set_by_a_launcher(name)


@pytest.mark.parametrize("launcher", all_launchers(), ids=lambda launcher: launcher.name)
def test_no_secret_leaves_by_the_name_of_a_launcher(launcher: Launcher) -> None:
    for name in examples(launcher):
        assert read_environment({name: "password=hunter2 --token abcdef"}) == {name: REDACTED}
        assert read_environment({f"{name}_TOKEN": "x", f"{name}_SECRET_FILE": "x"}) == {}
    for prefix in launcher.owned_prefixes:
        assert read_environment({f"{prefix}_AUTH": "x", f"{prefix}PASSWORD": "x"}) == {}


@pytest.mark.parametrize(
    "name",
    [
        "SM_HPS", "SM_HP_API_KEY", "SM_USER_ARGS", "SM_TRAINING_ENV", "SLURM_JWT", "SLURM_JOB_NAME",
        "SLURM_JOB_ACCOUNT",
        "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI41", "PET_NAME", "LSB_JOBNAME", "JSM_GPU_ASSIGNMENTS",
    ],
)  # fmt: skip
def test_what_a_launcher_sets_besides_stays_where_it_is(name: str) -> None:
    assert read_environment({name: "x"}) == {}


@pytest.mark.parametrize("launcher", all_launchers(), ids=lambda launcher: launcher.name)
def test_the_header_of_a_report_shows_its_label(launcher: Launcher) -> None:
    snapshot = with_facts(cluster(2), "node01", launch=replace(launch(0, 2), source=launcher.name))
    assert launcher.label == label_of(launcher.name)
    assert f" · {launcher.label}" in render(report(snapshot=snapshot)).splitlines()[0]


@pytest.mark.parametrize("launcher", DETECTING, ids=lambda launcher: launcher.name)
def test_a_launcher_is_found_by_variables_that_it_declares_and_the_docs_name(launcher: Launcher) -> None:
    page = (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8")
    assert launcher.variables
    assert any(pattern.rstrip("*") in page for pattern in launcher.variables)


@pytest.mark.parametrize("launcher", all_launchers(), ids=lambda launcher: launcher.name)
def test_the_docs_name_its_command_line(launcher: Launcher) -> None:
    page = (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8")
    assert not launcher.commands or any(f"`{' '.join(begin)}" in page for begin in launcher.commands)


def test_launchers_have_unique_precedence_and_a_source_of_their_count() -> None:
    asked = [found for found in all_launchers() if found.detect is not None]
    assert len({found.precedence for found in asked}) == len(asked)
    assert all(node_count_source(found.name) != found.name for found in asked)
    assert node_count_source("newer") == "newer"
    assert label_of("newer") == "newer"


def test_no_program_belongs_to_two_launchers() -> None:
    for field in ("commands", "modules", "remote_starters"):
        listed = [entry for found in all_launchers() for entry in getattr(found, field)]
        assert len(set(listed)) == len(listed), field
    assert {"srun", "mpirun", "ssh"} <= remote_starters()
    assert [len(begin) for begin in commands()] == sorted((len(begin) for begin in commands()), reverse=True)
    assert ("torch.distributed.run",) in modules()
