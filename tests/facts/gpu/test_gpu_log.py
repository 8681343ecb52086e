"""Xid and SXid errors in the kernel's log: real records, a real pipe for the buffer, a real program for the journal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ncclcheck.facts.gpu.gpu_log import kmsg_lines, logged_errors, read_gpu_log
from ncclcheck.model.fact import Missing
from ncclcheck.model.gpu import LoggedError
from tests.fact_builders import some

FELL_OFF = "NVRM: Xid (PCI:0000:1B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 24007, Fatal, Link 12 sourcetrack timeout error"
OLD = "NVRM: Xid (0000:03:00): 14, Channel 00000001"


def journal(*lines: str, code: int = 0) -> tuple[str, ...]:
    """A program that prints what journalctl would."""
    script = f"import sys; print({chr(10).join(lines)!r}); sys.exit({code})"
    return (sys.executable, "-c", script)


def test_the_errors_are_found_with_address_time_and_how_often() -> None:
    lines = [(10.0, FELL_OFF), (20.0, "usb 1-1: new device"), (30.0, FELL_OFF), (40.0, SWITCH), (50.0, OLD)]
    assert logged_errors(lines, 100.0) == (
        LoggedError("Xid", 14, "0000:03:00.0", 50.0, OLD),
        LoggedError("SXid", 24007, "0000:c4:00.0", 60.0, SWITCH),
        LoggedError("Xid", 79, "0000:1b:00.0", 70.0, FELL_OFF, times=2),
    )


def test_only_what_the_kernel_itself_wrote_counts() -> None:
    records = [
        f"4,100,5000000,-;{FELL_OFF}\n SUBSYSTEM=pci\n".encode(),
        f"12,101,6000000,-;{FELL_OFF}\n".encode(),  # facility 1: written by a program
        b"\xff\xfe no record",
        b"4,x,y,-;NVRM",
    ]
    assert list(kmsg_lines(records)) == [(5.0, FELL_OFF)]


def test_a_buffer_is_read_to_its_end_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "kmsg"
    os.mkfifo(pipe)
    keeper = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(keeper, f"4,100,0,-;{FELL_OFF}\n".encode())
        log = some(read_gpu_log(5.0, pipe))
    finally:
        os.close(keeper)
    assert (log.source, [error.number for error in log.errors]) == (str(pipe), [79])


def test_a_readable_log_without_errors_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text("6,1,100,-;Linux version 6.8.0\n")
    assert some(read_gpu_log(5.0, log)).errors == ()


def test_the_journal_is_asked_where_the_buffer_may_not_be_read(tmp_path: Path) -> None:
    log = some(read_gpu_log(20.0, tmp_path / "none", journal(f"[ 5012.345678] node01 kernel: {FELL_OFF}")))
    assert [(error.kind, error.number, error.pci) for error in log.errors] == [("Xid", 79, "0000:1b:00.0")]


def test_a_journal_that_shows_nothing_of_the_kernel_is_no_clean_log(tmp_path: Path) -> None:
    for answer in (journal("-- No entries --"), journal("Hint: you are not allowed", code=1), ("/no/such",)):
        log = read_gpu_log(20.0, tmp_path / "none", answer)
        assert isinstance(log, Missing)


@pytest.mark.slow
def test_a_journal_that_hangs_is_given_up(tmp_path: Path) -> None:
    sleeper = (sys.executable, "-c", "import signal; signal.pause()")
    log = read_gpu_log(1.0, tmp_path / "none", sleeper)
    assert isinstance(log, Missing)
    assert "no answer within" in log.detail


def test_an_unreadable_address_or_number_does_not_break_the_rest() -> None:
    lines = [
        (1.0, "NVRM: Xid (PCI:zz): 79"),
        (1.0, "NVRM: Xid (PCI:1b): 79, x"),
        (1.0, "NVRM: Xid (PCI:0000:1b:00): x"),
    ]
    assert [(error.number, error.pci) for error in logged_errors(lines, 2.0)] == [(79, "")]


def test_the_registers_of_a_switch_error_do_not_hide_that_it_was_fatal() -> None:
    head = "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 24007"
    texts = (
        ", Fatal, Link 12 x",
        ", Severity 1 Engine instance 12",
        ", Data {0x00000001, 0x2}",
        ", Non-fatal, Link 12 y",
    )
    lines = [(100.0 + number, head + text) for number, text in enumerate(texts)]
    errors = logged_errors(lines, 200.0)
    assert [(error.text, error.times) for error in errors] == [(head + texts[3], 1), (head + texts[0], 1)]


def test_a_second_reading_tells_the_same_error_again(tmp_path: Path) -> None:
    asked = journal(f"[ 12.5] node01 kernel: {FELL_OFF}")
    readings = [some(read_gpu_log(20.0, tmp_path / "none", asked)) for _ in range(2)]
    assert [[error.number for error in log.errors] for log in readings] == [[79], [79]]
