"""`ncclcheck matrix` on the command line: its options, and what it refuses."""

from __future__ import annotations

import pytest

from ncclcheck.cli.main import run_command
from ncclcheck.cli.request import run_options
from ncclcheck.model.errors import UsageError


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
    assert run_command(["matrix", "--quiet", "--select", "cell-slow"]) == 3
    assert "no pairs of nodes were measured: it takes two nodes" in capsys.readouterr().out
