"""How the process ends, whatever happens, and how little it loads to do so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import ncclcheck.cli.main as cli
from tests.cli.command_line import clean_environment, ncclcheck, refused, saved_run
from tests.cost import interpreter_s, processor_s


def test_help_is_fast_and_lists_the_commands() -> None:
    done = ncclcheck("--help")
    assert done.code == 0
    for name in ("preflight", "bench", "run", "env", "predict", "report", "facts", "checks"):
        assert f"\n  {name} " in done.out
    assert "..." not in done.out.partition("Commands:")[2]  # every summary fits on its line of 80 columns
    # about 5 times as much as nothing at all, and half a second would be 40 times as much
    assert processor_s([sys.executable, "-m", "ncclcheck", "--help"]) < 15 * interpreter_s()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["bench", "--help"],
        ["checks"],
        ["report", "--schema"],
        ["preflight", "--from", "SAVED"],
        ["env", "--from", "SAVED"],
    ],
    ids=" ".join,
)
def test_torch_is_not_imported_for(arguments: list[str], tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "saved.json")
    given = [saved if argument == "SAVED" else argument for argument in arguments]
    script = (
        "import sys, ncclcheck.cli.main as m; code = m.run_command(sys.argv[1:]); "
        "sys.exit(99 if {'torch', 'numpy'} & set(sys.modules) else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *given], capture_output=True, text=True, timeout=60, check=False,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[2])),
    )  # fmt: skip
    assert done.returncode == 0, done


def test_the_version_is_told() -> None:
    assert ncclcheck("--version").out == "ncclcheck 0.1.0\n"


def test_a_full_disk_is_no_bug_of_ours(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ncclcheck", "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=60, check=False, cwd=tmp_path,
            env=clean_environment(PYTHONPATH=str(Path(__file__).parents[2])),
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "ncclcheck: error: standard output cannot be written: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


def test_no_command_shows_the_help_and_is_wrong_usage() -> None:
    done = ncclcheck()
    assert (done.code, done.out) == (2, "")
    assert "Commands:" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["prefligt"], "unknown command 'prefligt': did you mean 'preflight'?"),
        (["compare", "a.json", "b.json"], "unknown command 'compare': did you mean 'report compare'?"),
        (["comapre"], "unknown command 'comapre': did you mean 'report compare'?"),
        (["xyzzy"], "unknown command 'xyzzy': expected one of preflight, bench, run"),
        (["preflight", "--node_rnk", "1"], "unknown option '--node-rnk': did you mean '--node-rank'?"),
        (
            ["preflight", "--xyzzy"],
            "unknown option '--xyzzy': 'ncclcheck preflight --help' lists the options",
        ),
        (["preflight", "extra"], "unexpected 'extra': the command that starts the job stands after '--'"),
        (["preflight", "--nnodes"], "'--nnodes' requires an argument"),
        (["preflight", "--fail-on", "always"], "'always' is not one of 'error', 'warning', 'never'"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in refused(ncclcheck(*arguments))


def test_a_command_for_programs_is_not_offered() -> None:
    assert "remote" not in refused(ncclcheck("xyzzy"))


def test_a_bug_is_saved_to_a_file_and_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @cli.command.command("with-a-bug")
    def with_a_bug() -> None:
        raise KeyError("a bug for the test")

    monkeypatch.chdir(tmp_path)
    try:
        code = cli.run_command(["with-a-bug"])
    finally:
        del cli.command.commands["with-a-bug"]
    assert code == 70
    (saved,) = tmp_path.glob("ncclcheck-crash-*.txt")
    assert "a bug for the test" in saved.read_text()
    assert "Traceback" in saved.read_text()
    error = capsys.readouterr().err
    assert saved.name in error
    assert "please open an issue" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("raised", "code"), [(KeyboardInterrupt, 130), (click.Abort, 130), (BrokenPipeError, 0)]
)
def test_an_interruption_is_no_bug(raised: type[BaseException], code: int) -> None:
    @cli.command.command("ends-early")
    def ends_early() -> None:
        raise raised

    try:
        assert cli.run_command(["ends-early"]) == code
    finally:
        del cli.command.commands["ends-early"]


def started(tmp_path: Path, script: str, on_hangup: str = "SIG_DFL") -> subprocess.Popen[str]:
    """A process that goes through `main` with a command that runs `script`, and has told that it is in there."""
    program = (
        "import signal, sys, threading, time, os\n"
        f"signal.signal(signal.SIGHUP, signal.{on_hangup})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell without job control ignores it for '&'
        "import ncclcheck.cli.main as m\n"
        "@m.command.command('act')\n"
        "def act():\n"
        "    print('there', flush=True)\n"
        f"    {script}\n"
        "sys.argv[1:] = ['act']\n"
        "m.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[2])),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    return process


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_130(tmp_path: Path, signal_number: signal.Signals) -> None:
    process = started(tmp_path, "threading.Event().wait(50)")
    process.send_signal(signal_number)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert error.strip() == "ncclcheck: interrupted"  # after the line that the terminal's ^C stands on


@pytest.mark.slow
def test_a_lost_terminal_does_not_end_it_where_it_was_started_with_nohup(tmp_path: Path) -> None:
    process = started(tmp_path, "time.sleep(1)", on_hangup="SIG_IGN")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_thread_that_will_not_end_does_not_keep_the_process(tmp_path: Path) -> None:
    begun = time.monotonic()
    process = started(tmp_path, "threading.Thread(target=time.sleep, args=(50,)).start()")
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert time.monotonic() - begun < 15


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "saved.json")
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "ncclcheck", "preflight", "--from", saved, "--format", "json"],
        stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[2])),
    )  # fmt: skip
    os.close(write_end)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.returncode in (0, 1, 3)


def test_a_terminal_that_knows_only_ascii_gets_escapes_not_a_crash(tmp_path: Path) -> None:
    saved = saved_run(tmp_path / "saved.json")
    done = ncclcheck("preflight", "--from", saved, environ={"PYTHONIOENCODING": "ascii"})
    assert done.code != 70
    assert done.out.splitlines()[-1].startswith(f"exit {done.code}: ")
    assert done.out.isascii()
