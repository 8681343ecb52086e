"""What shows that a job worked, and that it went on after an error."""

from __future__ import annotations

from ncclcheck.checks.logs._works import is_overcome, shows_work, went_on_after
from ncclcheck.model.events import CommInit, Log, LogFile, LogPosition, Process, Remark, Words

FILES = (LogFile("a", 0, 90), LogFile("b", 0, 90))


def at(line: int, file: str = "a") -> LogPosition:
    return LogPosition(file, line)


def test_three_lines_of_work_in_the_same_file_show_that_the_job_went_on() -> None:
    log = Log(FILES, works={"a": (5, 6, 7), "b": (50, 60)})
    assert went_on_after(log, at(4))
    assert not went_on_after(log, at(5))
    assert not went_on_after(log, at(4, "b"))
    assert not went_on_after(Log(FILES), at(4))


def test_what_the_results_or_the_machine_say_is_not_overcome() -> None:
    log = Log(FILES, works={"a": (5, 6, 7)})
    assert is_overcome(log, Remark(at(1), "x", "name-resolution"))
    assert not is_overcome(log, Remark(at(1), "x", "wrong-results"))
    assert not is_overcome(log, Remark(at(1), "x", "message", {"ends": "yes"}))


def test_words_alone_are_no_work() -> None:
    words = (Words(at(1), "loading", at(2), "building", 2),)
    assert not shows_work(Log(FILES, words=words))
    assert not shows_work(Log(FILES))
    assert not shows_work(Log(FILES, processes=(Process("n1", 7, at(1)),)))
    complete = CommInit(at(2), "comm 0x1 rank 0 nranks 2 - Init COMPLETE", "complete", "0x1", 0, 2)
    assert shows_work(Log(FILES, processes=(Process("n1", 7, at(1)),), events=(complete,)))
    assert shows_work(Log(FILES, words=words, works={"a": (3,)}))
    assert shows_work(Log(FILES, words=words, events=(Remark(at(3), "done", "finished"),)))
