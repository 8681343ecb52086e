"""The same snapshot gives the same report, saved and replayed."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.codec import decode, encode_pretty
from ncclcheck.model.saved import Saved
from ncclcheck.run.conclude import judge, save, start_clock
from ncclcheck.run.options import RunOptions
from ncclcheck.run.replay import replay
from tests.builders import cluster

OPTIONS = RunOptions(command="preflight")


def test_a_saved_run_replays_to_the_identical_report() -> None:
    saved = save(cluster(4), OPTIONS, start_clock(), interrupted=False)
    again = decode(encode_pretty(saved), Saved)
    assert again == saved
    assert encode_pretty(replay(again, OPTIONS)) == encode_pretty(judge(saved, OPTIONS))
    assert judge(saved, OPTIONS).verdict.exit_code == 0


def test_an_interrupted_run_is_130_and_still_a_report() -> None:
    saved = save(replace(cluster(2), viewpoint="one-node"), OPTIONS, start_clock(), interrupted=True)
    report = judge(saved, OPTIONS)
    assert report.verdict.exit_code == 130
    assert len(report.nodes) == 2
