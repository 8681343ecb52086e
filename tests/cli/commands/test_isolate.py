"""`ncclcheck isolate` on the command line: its options, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.main import run_command
from ncclcheck.cli.request import run_options
from ncclcheck.model.errors import UsageError
from ncclcheck.run.options import Command


def test_options_become_a_request() -> None:
    given = {"slower_than": "15%", "size": "8M", "screen": 2, "max_rounds": 5, "seed": 9}
    request = run_options("isolate", given).isolate
    assert request is not None
    assert (request.effect, request.most_bytes, request.screen, request.most_rounds, request.seed) == (
        0.15,
        8 << 20,
        2,
        5,
        9,
    )


def test_without_a_seed_each_run_draws_its_own() -> None:
    requests = {run_options("isolate", {}).isolate for _ in range(4)}
    assert len(requests) > 1


def test_a_benchmark_tests_pairs_only_if_it_is_told_to_and_then_asks_for_the_size_too() -> None:
    assert run_options("bench", {}).isolate is None
    told = run_options("bench", {"isolate": True})
    assert told.isolate is not None
    assert told.isolate.rings
    assert told.timeout_s > run_options("bench", {}).timeout_s


@pytest.mark.parametrize(
    "given",
    [{"slower_than": "1%"}, {"slower_than": "fast"}, {"size": "1"}, {"size": "1M-4M"}, {"size": "large"}],
)
def test_what_makes_no_sense_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"--(slower-than|size) '.*': expected"):
        run_options("isolate", given)


def test_a_policy_says_what_the_command_line_does_not(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('[isolate]\nslower_than = 20\nsize = "16M"\n[matrix]\nsize = "1M"\n')
    site = {"expect": str(file)}
    cases: tuple[tuple[Command, dict[str, Any], tuple[float, int]], ...] = (
        ("isolate", {}, (0.2, 16 << 20)),
        ("isolate", {"slower_than": "5%"}, (0.05, 16 << 20)),
        ("bench", {"isolate": True}, (0.2, 16 << 20)),
        ("matrix", {}, (0.1, 1 << 20)),
    )
    for command, given, wanted in cases:
        request = run_options(command, {**site, **given}).isolate
        assert request is not None
        assert (request.effect, request.most_bytes) == wanted
    assert run_options("bench", site).isolate is None


def test_one_node_alone_cannot_be_isolated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert run_command(["isolate", "--quiet", "--select", "node-slow"]) == 3
    assert "no pairs of nodes were tested: it takes two nodes" in capsys.readouterr().out
