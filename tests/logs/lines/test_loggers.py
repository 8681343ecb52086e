"""What loggers write before a message is removed, so that an exception behind it is one."""

from __future__ import annotations

import pytest

from ncclcheck.checks.logs._view import exceptions
from ncclcheck.logs.collect import Collector
from ncclcheck.logs.lines.loggers import lines_of_record
from ncclcheck.logs.lines.split import batches

PREFIXES = (
    "ERROR 11-22 10:23:45 worker.py:123] ",
    "(VllmWorkerProcess pid=55933) ERROR 11-25 08:17:34 multiproc_worker_utils.py:229] ",
    "(EngineCore pid=12244) ERROR 07-15 21:01:01 [core.py:1240] ",
    "(RayWorkerWrapper pid=67451, ip=10.1.0.7) ERROR 06-25 15:28:30 worker_base.py:148] ",
    "2025-03-04 11:02:07.431 | ERROR    | trainer.main:run:88 - ",
    "2025-03-04 11:02:07,431 - train - ERROR - ",
    "2025-03-04 11:02:07,431 - ERROR - ",
    "[2024-07-10 10:12:15,007] [ERROR] [launch.py:325:sigkill_handler] ",
    "[2025-05-05 10:00:00 TP3] ",
    "[2025-05-05 10:00:00 DP0 TP0 EP0] ",
    "ERROR:torch.distributed.run:",
    "ERROR: ",
    "3: [rank3]: ",
    "[rank3]:",
    "2025-03-14T09:41:07.123456Z ",
    "\x1b[36m(RayTrainWorker pid=1, ip=10.0.0.2)\x1b[0m ",
    "[pod/train-1/pytorch] [default3]:[rank3]: ",
    "2025-03-14 09:41:07 ERROR worker.py:409 -- ",
)


def log_of(text: str) -> Collector:
    collector = Collector()
    collector.read("job.log", batches([text.encode()]))
    return collector


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_exception_behind_the_prefix_is_an_exception(prefix: str) -> None:
    found = exceptions(log_of(f"{prefix}ValueError: labels are missing\n").log())
    assert [(raised.class_name, raised.message) for raised in found] == [("ValueError", "labels are missing")]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_traceback_behind_the_prefix_is_read_to_its_end(prefix: str) -> None:
    lines = ("Traceback (most recent call last):", '  File "train.py", line 3, in step', "yaml.BadNews: no")
    found = exceptions(log_of("".join(f"{prefix}{line}\n" for line in lines)).log())
    assert [(raised.class_name, "train.py" in raised.where) for raised in found] == [("yaml.BadNews", True)]


def test_a_json_record_gives_its_lines_and_its_rank() -> None:
    record = (
        b'{"level": "error", "rank": 2, "msg": "failed", "exc_info": "Traceback\\n  File\\nValueError: x"}'
    )
    assert list(lines_of_record(record)) == [
        b"[rank2]: failed",
        b"[rank2]: Traceback",
        b"[rank2]:   File",
        b"[rank2]: ValueError: x",
    ]


@pytest.mark.parametrize("line", [b"{", b"{}", b'{"a": 1}', b"[1]", b"{" * 5000, b'{"msg": 3}', b"{\xff}"])
def test_what_is_no_record_gives_nothing(line: bytes) -> None:
    assert list(lines_of_record(line)) == []


def test_docker_s_json_lines_are_read() -> None:
    text = '{"log":"RuntimeError: no data\\n","stream":"stderr","time":"2025-01-01T00:00:00Z"}\n'
    assert [raised.message for raised in exceptions(log_of(text).log())] == ["no data"]


def test_a_json_record_tells_its_host_and_level_and_a_traceback_under_any_key() -> None:
    record = rb'{"level": "ERROR", "host": "node-b", "rank": 6, "msg": "failed"}'
    assert list(lines_of_record(record)) == [b"[pod/node-b] [rank6]: [ERROR] failed"]
    record = (
        rb'{"host": "node-b", "msg": "failed", "my_exc": "Traceback (most recent call last):\nValueError: x"}'
    )
    assert b"[pod/node-b] ValueError: x" in list(lines_of_record(record))


def test_a_record_of_rusts_tracing_keeps_its_target_as_in_plain_text() -> None:
    record = b'{"level":"%b","fields":{"message":"Connected"},"target":"text_generation_router"}'
    assert list(lines_of_record(record % b"INFO")) == [b"INFO text_generation_router: Connected"]
    assert list(lines_of_record(record % b"ERROR")) == [b"[ERROR] Connected"]
