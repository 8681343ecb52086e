"""What a line sounds like by its words: the table is what the labelled logs teach, and holds for unseen lines."""

from __future__ import annotations

import pytest

from ncclcheck.logs.patterns.work_words import Words, is_foreign, is_of_work, sounds_like_work
from scripts.learning.words import FILE, Endings, as_toml, endings, learn
from tests.logs.rounds import HeldOut, held_out, rounds

PARTS = 5


def labelled() -> list[HeldOut]:
    return [log for path in rounds() for log in held_out(path)]


@pytest.mark.slow
def test_the_table_is_what_the_logs_teach() -> None:
    assert as_toml(learn(labelled(), endings())) == FILE.read_text(), "run scripts/learn_words"


@pytest.mark.slow
def test_most_ways_to_end_are_heard_that_it_has_not_learnt() -> None:
    logs, told = labelled(), endings()
    heard = mistaken = 0
    for part in range(PARTS):
        table = learn(logs, Endings(without(told.ended, part), without(told.only_sounds, part)))
        heard += sum(is_of_work(line, table) for line in told.ended[part_of(told.ended, part)])
        mistaken += sum(is_of_work(line, table) for line in told.only_sounds[part_of(told.only_sounds, part)])
    assert heard >= 0.6 * len(told.ended)
    assert mistaken <= 0.5 * len(told.only_sounds)


def part_of(lines: tuple[str, ...], part: int) -> slice:
    """Lines of one program stand together, so a part is a block of them."""
    return slice(part * len(lines) // PARTS, (part + 1) * len(lines) // PARTS)


def without(lines: tuple[str, ...], part: int) -> tuple[str, ...]:
    held_back = part_of(lines, part)
    return (*lines[: held_back.start], *lines[held_back.stop :])


def test_the_words_of_a_job_at_work_are_heard() -> None:
    assert sounds_like_work("Total wall time: 0:00:47")
    assert sounds_like_work("Saved merged weights to 'out/lit_model.pth'")


def test_words_that_nobody_knows_are_not_work() -> None:
    assert not sounds_like_work("gabelo rutiva: kosade menilo 47")


def test_words_of_trouble_are_not_work() -> None:
    assert not sounds_like_work("could not allocate memory for the buffer")


def test_a_single_word_after_a_number_is_its_unit() -> None:
    table = Words(unknown=-1.0, work={"mib": 4.0, "top": 3.0}, elsewhere={})
    assert not is_of_work("0, 100 %, 33482 MiB", table)
    assert is_of_work('"top5": 83.82166', table)


def test_a_line_is_foreign_if_no_job_at_work_ever_said_most_of_its_words() -> None:
    assert is_foreign("gabelo rutiva: kosade menilo 47")
    assert not is_foreign("the training is done, and the weights are saved")
    assert not is_foreign("47 gabelo")
    assert is_foreign("显存不足 进程已退出")
    assert is_foreign("ошибка памяти, процесс завершён")
