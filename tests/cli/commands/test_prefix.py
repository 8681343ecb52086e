"""`ncclcheck preflight -- COMMAND` on one node: COMMAND as if it had been started itself, or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.cli.commands.handover import inherited
from ncclcheck.cli.commands.prefix import Prefixed, advised_here, before, code_of, read_prefixed
from ncclcheck.launch.flags import LaunchFlags
from ncclcheck.launch.line.launch_line import CommandLine, LaunchLine, Script
from ncclcheck.model.errors import UsageError
from ncclcheck.model.report import Advice, Setting
from ncclcheck.run.options import HeadRequest, RunOptions
from tests.builders import cluster
from tests.cli.command_line import clean_environment, ncclcheck, refused, saved_run
from tests.ports import free_port

SELF = """
import json, os, signal, sys
json.dump({
    "argv": sys.argv, "cwd": os.getcwd(), "environ": dict(os.environ), "stdin": sys.stdin.read(),
    "open": [number for number in range(3, 200) if os.path.exists(f"/proc/self/fd/{number}")],
    "ignored": [line.split()[1] for line in open("/proc/self/status") if line.startswith("SigIgn")][0],
    "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
}, open("seen.json", "w"))
sys.exit(7)
"""


def prefixed(folder: Path, *words: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    environ = {**clean_environment(PYTHONPATH=str(Path(__file__).parents[3])), **extra}
    return subprocess.run(
        [sys.executable, "-m", "ncclcheck", "preflight", *words],
        cwd=folder, env=environ, input=stdin, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_command_runs_as_if_it_had_been_started_itself(tmp_path: Path) -> None:
    (tmp_path / "me.py").write_text(SELF)
    words = [sys.executable, "me.py", "--lr", "1", "--", "-q"]
    environ = {**clean_environment(PYTHONPATH=str(Path(__file__).parents[3])), "LANG": "C", "ODD": "\udcff"}
    environ.pop("LC_ALL", None)
    environ.pop("LC_CTYPE", None)
    kept, other = os.pipe()
    how = {
        "cwd": tmp_path,
        "env": environ,
        "input": b"hello",
        "capture_output": True,
        "check": False,
        "timeout": 60,
    }
    direct = subprocess.run(words, pass_fds=[kept], **how)  # type: ignore[call-overload]
    alone = json.loads((tmp_path / "seen.json").read_text())
    ours = [sys.executable, "-m", "ncclcheck", "preflight", "-q", "--output", "report.json", "--", *words]
    done = subprocess.run(ours, pass_fds=[kept], **how)  # type: ignore[call-overload]
    os.close(kept)
    os.close(other)
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (direct.returncode, done.returncode) == (7, 7), done.stderr
    assert seen == alone
    assert b"exit 0" in done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["verdict"]["exit_code"] == 0


def test_on_failure_nothing_is_started_and_the_report_is_written(tmp_path: Path) -> None:
    done = prefixed(
        tmp_path,
        *("--require", "peer-filtered", "--output", "report.json"),
        *("--", "touch", "started"),
    )
    assert done.returncode == 3, done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json"]


def test_a_file_that_cannot_be_written_does_not_keep_one_node_from_starting(tmp_path: Path) -> None:
    (tmp_path / "full.json").symlink_to("/dev/full")
    done = prefixed(tmp_path, "-q", "--output", "full.json", "--", "touch", "started")
    assert (done.returncode, (tmp_path / "started").exists()) == (0, True), done.stderr
    assert "--output full.json: cannot be written" in done.stderr


@pytest.mark.slow
@pytest.mark.further
def test_the_port_of_the_check_can_be_bound_at_once(tmp_path: Path) -> None:
    port = free_port()
    script = tmp_path / "bind.py"
    script.write_text(
        "import os, torch.distributed as dist\n"
        f"store = dist.TCPStore('127.0.0.1', {port}, 2, int(os.environ['RANK']) == 0)\n"
        "print('bound', os.environ['RANK'], flush=True)\n"
    )
    launch = {
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    running = []
    for rank in ("0", "1"):
        environ = clean_environment(
            PYTHONPATH=str(Path(__file__).parents[3]), RANK=rank, LOCAL_RANK=rank, **launch
        )
        words = [sys.executable, "-m", "ncclcheck", "preflight", "-q", "--", sys.executable, str(script)]
        running.append(subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True))
    outputs = [one.communicate(timeout=60)[0] for one in running]
    assert [one.returncode for one in running] == [0, 0], outputs
    assert "bound 0" in outputs[0]
    assert outputs[1] == "bound 1\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--", "no-such-command"], "-- no-such-command: there is no such command on this node"),
        (["--", "./train.py"], "-- ./train.py: is there, but not executable: python ./train.py"),
        (["--", "./train.sh"], "-- ./train.sh: is there, but not executable: chmod +x ./train.sh"),
        (["--", "./runs"], "-- ./runs: is a folder"),
        (["--"], "nothing follows '--'"),
        (
            ["torchrun", "train.py"],
            "unexpected 'torchrun': the command that starts the job stands after '--'",
        ),
        (["--apply"], "--apply is for the command that follows '--'"),
        (["--from", "{run}", "--", "true"], "--from replays a run that is over"),
        (["--nnodes", "2", "--", "true"], "--nnodes 2 says nothing about which node this is"),
        (["--", "env", "mpirun", "true"], "mpirun starts the other nodes"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    run = saved_run(tmp_path / "run.json", cluster(2))
    (tmp_path / "train.py").touch()
    (tmp_path / "train.sh").touch()
    (tmp_path / "runs").mkdir()
    done = ncclcheck("preflight", *(word.replace("{run}", run) for word in words), cwd=tmp_path)
    assert sentence in refused(done)


def test_apply_says_what_it_adds(tmp_path: Path) -> None:
    done = prefixed(tmp_path, "-q", "--apply", "--", "true")
    assert done.returncode == 0
    assert "--apply: nothing is advised; the environment stays as it is" in done.stderr


def test_advice_is_for_its_hosts() -> None:
    both = Setting("NCCL_SOCKET_IFNAME", "=eth0", (), "why", "asked", "")
    one = Setting("GLOO_SOCKET_IFNAME", None, ("node2",), "why", "rule", "")
    assert advised_here(Advice((both, one)), "node1") == [("NCCL_SOCKET_IFNAME", "=eth0")]
    assert advised_here(Advice((both, one)), "node2")[1] == ("GLOO_SOCKET_IFNAME", None)


def test_flags_place_a_command_that_does_not_tell_its_place() -> None:
    for words in (
        ["sh", "-c", "cd x && torchrun train.py"],
        ["env", "torchrun", "--nnodes=2", "--rdzv-backend=etcd", "x"],
    ):
        with pytest.raises(UsageError, match="--nnodes"):
            read_prefixed(words, dict(os.environ))
        found = read_prefixed(words, dict(os.environ), LaunchFlags(nnodes=2, node_rank=1, master_addr="a"))
        assert found.line == CommandLine()


def test_a_list_of_hosts_leaves_none_out_on_which_the_command_starts() -> None:
    program = Prefixed(("deepspeed",), "/bin/deepspeed", {}, CommandLine(), inherited())

    def checked(hosts: tuple[str, ...], line: LaunchLine) -> RunOptions:
        head = HeadRequest(hosts, hosts, (None,) * len(hosts), ("ssh",), "python", {}, "/")
        run = RunOptions("preflight", head=head)
        return before(run, replace(program, line=CommandLine(line)), applies=False)

    both = LaunchLine("deepspeed", nnodes=2, remote_hosts=("a", "b"))
    assert checked(("a.cluster", "b", "c"), both).line == both
    with pytest.raises(UsageError, match="does not name b: name them all, as that list does: --hosts a,b"):
        checked(("a",), both)
    assert checked(("a", "b"), LaunchLine("torchrun", nnodes=4, min_nodes=2)).head is not None
    with pytest.raises(UsageError, match="torchrun is for 4 nodes, and --hosts names 2"):
        checked(("a", "b"), LaunchLine("torchrun", nnodes=4))


def test_the_code_is_the_scripts_folder_or_the_modules_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pkg").mkdir()
    assert code_of(CommandLine(script=Script("src/train.py"))) == ("src",)
    assert code_of(CommandLine(script=Script("train.py"))) == (".",)
    assert code_of(CommandLine(script=Script("pkg.train", is_module=True))) == ("pkg",)
    assert code_of(CommandLine(script=Script("train.py", folder="job"))) == ("job",)
    (tmp_path / "job" / "pkg").mkdir(parents=True)
    assert code_of(CommandLine(script=Script("pkg.a", is_module=True, folder="job"))) == ("job/pkg",)
    assert code_of(CommandLine(script=Script("installed.train", is_module=True))) == ()
    assert code_of(CommandLine()) == ()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert code_of(CommandLine(script=Script("train.py"))) == (
        "train.py",
    )  # a home holds all sorts of things


def test_a_command_is_found_on_the_path_it_will_have() -> None:
    found = read_prefixed(["true", "x"], {"PATH": "/nowhere:/usr/bin:/bin", "A": "1"})
    assert (found.words, Path(found.program).name) == (("true", "x"), "true")
    assert found.environ == {"PATH": "/nowhere:/usr/bin:/bin", "A": "1"}
    with pytest.raises(UsageError):
        read_prefixed(["true"], {"PATH": "/nowhere"})
