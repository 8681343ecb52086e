"""`ncclcheck matrix` on the command line: its options, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.cli.documents import SAVED_KIND
from ncclcheck.cli.main import run_command
from ncclcheck.cli.request import run_options
from ncclcheck.model.codec import encode_pretty
from ncclcheck.model.errors import UsageError
from ncclcheck.model.saved import Saved
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.report.build import this_tool
from tests.isolation_builders import with_isolation
from tests.matrix_builders import two_leaves, with_matrix


@pytest.mark.parametrize(
    ("given", "scope"), [({}, "auto"), ({"full": True}, "full"), ({"leaves": True}, "leaves")]
)
def test_options_become_a_request(given: dict[str, bool], scope: str) -> None:
    request = run_options("matrix", {**given, "size": "8M"}).isolate
    assert request is not None
    assert (request.matrix, request.most_bytes) == (scope, 8 << 20)
    assert run_options("isolate", {}).isolate.matrix is None  # type: ignore[union-attr]


def test_both_scopes_are_refused() -> None:
    with pytest.raises(UsageError, match="--full and --leaves"):
        run_options("matrix", {"full": True, "leaves": True})


def test_one_node_alone_has_no_matrix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert run_command(["matrix", "--quiet", "--select", "link-outlier"]) == 3
    assert "no pairs of nodes were measured: it takes two nodes" in capsys.readouterr().out


def test_a_saved_matrix_is_compared_with_a_topology_that_is_given_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = replace(with_matrix(), matrix=two_leaves())
    saved, topology = tmp_path / "run.json", tmp_path / "topology.conf"
    saved.write_text(encode_pretty(saved_matrix(snapshot)))
    command = [
        "matrix",
        "--quiet",
        "--from",
        str(saved),
        "--select",
        "topology-differs,row-slow",
        "--fail-on",
        "warning",
    ]
    topology.write_text("SwitchName=s1 Nodes=node[01-03]\nSwitchName=s2 Nodes=node04\n")
    assert run_command(command) == 0
    assert "1 not applicable" in capsys.readouterr().out
    assert run_command([*command, "--topology", str(topology)]) == 4
    assert "node03 is behind s1 in --topology" in " ".join(capsys.readouterr().out.split())
    topology.write_text("SwitchName=s1 Nodes=node[01-02]\nSwitchName s2\n")
    assert run_command([*command, "--topology", str(topology)]) == 2
    assert "line 2: expected words like" in capsys.readouterr().err


def test_a_run_of_isolate_is_no_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "run.json"
    saved.write_text(encode_pretty(replace(saved_matrix(with_isolation()), command="isolate")))
    for words in (["--print", "hostfile"], ["--output", str(tmp_path / "x.csv")], []):
        assert run_command(["matrix", "--quiet", "--from", str(saved), *words]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "'ncclcheck isolate' saved this run, and 'matrix' has nothing to show of it" in shown.err
    assert not (tmp_path / "x.csv").exists()
    assert run_command(["isolate", "--quiet", "--from", str(saved), "--select", "node-slow"]) == 0


def saved_matrix(snapshot: Snapshot) -> Saved:
    return Saved("1", SAVED_KIND, this_tool(), "matrix", "2026-11-22T00:00:00+00:00", 9.0, False, snapshot)
