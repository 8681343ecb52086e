"""The winner as a file for NCCL's example tuner, read back by a reader of the documented grammar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ncclcheck.cli.main import run_command
from ncclcheck.model.bench import BenchResult
from ncclcheck.model.benchmarks.trials import CallChoice
from ncclcheck.report.bench_report import bench_report
from ncclcheck.report.document import to_json
from ncclcheck.report.formats import rendered
from ncclcheck.report.trials.tuner_csv import to_tuner_csv
from tests.builders import cluster
from tests.report.reports import report
from tests.trial_builders import FAST, SAME, SIZES, tried

WORDS = (
    {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"},
    {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"},
    {"ll", "ll128", "simple"},
)
CHOICES = tuple(CallChoice("all_reduce", size, "TREE", "LL128", 8) for size in SIZES)


def read(text: str) -> list[tuple[str, ...]]:
    """Read it as README.md of the plug-in documents it, and refuse what its C code would silently take for another."""
    rows = []
    for line in text.splitlines():
        assert len(line) < 255, "fgets of 256 characters would cut it, and read the rest as a row"
        if line.startswith("#") or not line:
            continue
        fields = tuple(line.split(","))
        assert 8 <= len(fields) <= 10
        assert fields[0] in WORDS[0]
        assert fields[3] in WORDS[1]
        assert fields[4] in WORDS[2]
        assert all(field.lstrip("-").isdigit() for field in (*fields[1:3], *fields[5:]))
        assert int(fields[1]) <= int(fields[2])
        assert int(fields[5]) >= 1, "-1 is one channel: the default that the plug-in sets before it looks"
        rows.append(fields)
    return rows


def on_nccl(bench: BenchResult, **changes: Any) -> str:
    assert bench.trials is not None
    trials = tuple(replace(trial, **{"choices": CHOICES, **changes}) for trial in bench.trials)
    bench = replace(bench, trials=trials)
    shown = replace(bench_report(replace(cluster(2), bench=bench), bench), backend="nccl")
    return to_tuner_csv(replace(report(), bench=shown))


def test_a_row_survives_a_reader_of_the_documented_grammar() -> None:
    assert read(on_nccl(tried(FAST))) == [
        ("allreduce", str(size), str(size), "tree", "ll128", "8", "2", "2") for size in SIZES
    ]


def test_the_trap_of_the_default_channel_is_explained() -> None:
    assert "runs on ONE channel" in on_nccl(tried(FAST))


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ((), "NCCL's log does not say"),
        (tuple(replace(choice, channels=0) for choice in CHOICES), "NCCL's log does not say"),
        ((*CHOICES, *(replace(choice, algorithm="RING") for choice in CHOICES)), "NCCL's log does not say"),
        (tuple(replace(choice, algorithm="MAGIC,1\n") for choice in CHOICES), "the plug-in does not know"),
    ],
)
def test_without_explicit_channels_or_with_unknown_words_there_is_no_row(choices: Any, why: str) -> None:
    text = on_nccl(tried(FAST), choices=choices)
    assert why in text
    assert "\n1" not in text


def test_nothing_advised_has_no_rows_and_says_so() -> None:
    text = on_nccl(tried(SAME))
    assert read(text) == []
    assert "# no rows: no setting that was tried is advised" in text
    assert "gloo was measured" in rendered(_gloo_report(), "csv")


def _gloo_report() -> Any:
    bench = tried(FAST)
    return replace(report(), bench=bench_report(replace(cluster(2), bench=bench), bench))


def test_a_saved_report_of_trials_gives_it_too_and_another_report_does_not(tmp_path: Path) -> None:
    saved, table = tmp_path / "report.json", tmp_path / "tuner.csv"
    saved.write_text(to_json(_gloo_report()))
    assert run_command(["report", str(saved), "--output", str(table), "--quiet"][:4]) in (0, 1, 3, 4)
    assert "# no rows: gloo" in table.read_text()
    saved.write_text(to_json(replace(report(), bench=None)))
    assert run_command(["report", str(saved), "--output", str(table)]) == 2
