"""NC503 code-differs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.model.fact import Missing
from ncclcheck.model.snapshot import CodeDifference, FileNames, Snapshot
from tests.builders import cluster, node, with_facts, without
from tests.checks.running import finding, is_silent, run
from tests.fact_builders import GONE, code_path, some


def with_path(snapshot: Snapshot, host: str, **changes: Any) -> Snapshot:
    code = some(node(snapshot, host).facts.code)
    return with_facts(snapshot, host, code=replace(code, paths=(code_path(**changes),)))


def with_packages(snapshot: Snapshot, host: str, **packages: str) -> Snapshot:
    code = some(node(snapshot, host).facts.code)
    return with_facts(snapshot, host, code=replace(code, packages_sha256="c" * 64, packages=packages))


def test_the_same_code_is_silent() -> None:
    assert is_silent("code-differs", cluster(4))


def test_the_node_with_other_files_is_named_with_its_commit() -> None:
    broken = with_path(cluster(4), "node03", tree_sha256="d" * 64, git_commit="beef" * 10, git_dirty=True)
    found = finding("code-differs", broken)
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "/work/train differs: dddddddddddd on node03" in found.summary
    assert any("beefbeefbeef with uncommitted changes" in piece.observed for piece in found.evidence)


def test_it_says_of_whose_files_it_is_not_known_which_differ() -> None:
    broken = with_path(cluster(4), "node03", tree_sha256="d" * 64)
    assert (
        "; which files differ on node03 was not found out in time" in finding("code-differs", broken).summary
    )
    names = FileNames(1, ("loss.py",))
    told = CodeDifference("/work/train", "node03", "node01", names, FileNames(0), FileNames(0))
    found = finding("code-differs", replace(broken, code_differences=(told,)))
    assert "loss.py" in found.summary
    assert "not found out" not in found.summary


def test_the_line_to_type_fits_what_is_there() -> None:
    without_git = cluster(4)
    for host in ("node01", "node02", "node03", "node04"):
        digit = "d" if host == "node03" else "a"
        without_git = with_path(without_git, host, tree_sha256=digit * 64, git_commit=Missing("absent", ""))
    (fix,) = finding("code-differs", without_git).fixes
    assert fix.text == "update node03 to the state of the others"
    assert fix.commands == (
        "rsync -rcni --delete node01:/work/train/ /work/train/   # -n: only lists what would change",
    )
    (fix,) = finding("code-differs", with_path(cluster(2), "node02", tree_sha256="d" * 64)).fixes
    assert fix.text == "make /work/train equal on node01 and node02"
    assert fix.commands[0] == "git -C /work/train status"


def test_a_path_that_is_not_there_is_an_error() -> None:
    found = finding(
        "code-differs", with_path(cluster(4), "node03", tree_sha256=Missing("absent", "no such path"))
    )
    assert (found.severity, found.hosts) == ("error", ("node03",))
    assert "absent on node03" in found.summary


def test_another_commit_with_equal_files_is_a_warning() -> None:
    found = finding("code-differs", with_path(cluster(4), "node03", git_commit="beef" * 10))
    assert (found.severity, found.hosts) == ("warning", ("node03",))


def test_another_commit_decides_where_files_could_not_be_compared() -> None:
    broken = with_path(
        cluster(4), "node03", tree_sha256=Missing("timeout", "too large"), git_commit="beef" * 10
    )
    assert finding("code-differs", broken).severity == "error"


def test_the_packages_that_differ_are_named_with_versions() -> None:
    found = finding(
        "code-differs", with_packages(cluster(4), "node03", torch="2.9.0", numpy="1.26.4", einops="0.8")
    )
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "numpy (1.26.4 on node03, 2.1.0 on node01, node02 and node04)" in found.summary
    assert "einops (0.8 on node03, not installed on node01, node02 and node04)" in found.summary


def test_what_could_not_be_read_is_unknown() -> None:
    assert run("code-differs", without(cluster(4), "node03", "code")).outcome == "unknown"
    unhashed = with_path(cluster(4), "node03", tree_sha256=Missing("timeout", "too large"))
    assert run("code-differs", unhashed).outcome == "unknown"
    code = some(cluster(4).nodes[2].facts.code)
    nameless = with_facts(cluster(4), "node03", code=replace(code, packages_sha256=Missing("error")))
    assert run("code-differs", nameless).outcome == "unknown"
    elsewhere = with_path(cluster(4), "node03", path="/other/train")
    assert run("code-differs", elsewhere).outcome == "unknown"


def _with_extra(*names: str, changed: tuple[str, ...] = ()) -> Snapshot:
    broken = with_path(cluster(4), "node03", tree_sha256="d" * 64)
    extra = FileNames(len(names), names)
    told = CodeDifference(
        "/work/train", "node03", "node01", FileNames(len(changed), changed), FileNames(0), extra
    )
    return replace(broken, code_differences=(told,))


def test_what_jobs_write_is_no_other_code() -> None:
    found = finding(
        "code-differs", _with_extra("nohup.out", "logs/rank0.txt", "wandb/run-1/files/config.yaml")
    )
    assert (found.severity, found.hosts) == ("warning", ("node03",))
    assert "by their names, jobs wrote them" in found.summary


@pytest.mark.parametrize(
    "broken",
    [
        _with_extra("nohup.out", "utils.py"),
        _with_extra("logs/__init__.py"),
        _with_extra("nohup.out", changed=("model.py",)),
        replace(_with_extra("a.log"), code_differences=()),
    ],
)
def test_code_among_it_or_what_is_not_named_is_an_error(broken: Snapshot) -> None:
    assert finding("code-differs", broken).severity == "error"


def test_a_relative_path_is_below_the_folder_that_the_user_is_in() -> None:
    broken = with_path(cluster(4), "node03", tree_sha256="d" * 64)
    for one in broken.nodes:
        code = some(one.facts.code)
        paths = tuple(replace(place, path="code", git_commit=GONE) for place in code.paths)
        broken = with_facts(broken, one.host, code=replace(code, paths=paths))
    (fix,) = finding("code-differs", broken).fixes
    assert fix.commands[0].startswith('rsync -rcni --delete node01:"$PWD"/code/ code/ ')
