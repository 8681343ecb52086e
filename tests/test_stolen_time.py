"""The account of stolen time is that of the kernel."""

from __future__ import annotations

from pathlib import Path

from tests import stolen_time


def test_stolen_time_is_read_from_the_cpu_line_of_proc_stat(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  9 8 7 6 5 4 3 250 1 0\ncpu0 1 1 1 1 1 1 1 125 0 0\ncpu1 1 1 1 1 1 1 1 125 0 0\nintr 7\n"
    )
    meter = stolen_time.read(stat)
    assert (meter.stolen_s, meter.cores) == (2.5, 2)


def test_a_share_is_of_all_cores_since_then() -> None:
    assert 0.0 <= stolen_time.read().share() <= 1.0
