"""ncclcheck from Python: the commands' options and results, light to import, and nothing left behind."""

from __future__ import annotations

import gc
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ncclcheck
from ncclcheck import api
from ncclcheck.cli import documents
from ncclcheck.cli.commands import isolate, matrix, session, soak
from tests.cli.command_line import clean_environment, saved_run

# What is of a command and not of a report: where it goes, what is shown, what is started after it.
ONLY_A_COMMAND_HAS = {"format_", "output", "save", "verbose", "quiet", "apply", "command", "print_"}
IN_A_JOB = """
import json, os, sys, threading
import torch
import torch.distributed as dist
import ncclcheck

before = set(os.environ)
reports = [ncclcheck.preflight(timeout=60) for _ in range(2)]
assert set(os.environ) == before, set(os.environ) ^ before
assert not [one.name for one in threading.enumerate() if one.name in ("store", "knock", "reach")]
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
words = {"codes": [one.verdict.exit_code for one in reports], "nodes": len(reports[1].nodes), "sum": total.item()}
with open(sys.argv[1] + os.environ["RANK"], "w") as file:
    json.dump(words, file)  # a file each: lines of several ranks on one pipe run into each other
dist.barrier()  # torch may abort where a rank ends while work of the group is under way
dist.destroy_process_group()
"""


@pytest.mark.parametrize("name", ["preflight", "bench", "run", "isolate", "matrix", "soak"])
def test_a_function_has_the_options_of_its_command(name: str) -> None:
    function: Any = getattr(ncclcheck, name)
    parameters = inspect.signature(function).parameters
    command: Any = getattr({"isolate": isolate, "matrix": matrix, "soak": soak}.get(name, session), name)
    options = {option.name for option in command.params} - ONLY_A_COMMAND_HAS
    assert set(parameters) == options
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters.values())
    assert function.__doc__


def test_importing_it_is_light_and_a_package_of_ours_does_not_replace_a_function() -> None:
    code = (
        "import sys, ncclcheck\n"
        "heavy = {'torch', 'msgspec', 'click', 'rich', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import ncclcheck.run.options, ncclcheck.bench.task\n"
        "from ncclcheck import bench, preflight, run, Report, Finding, Verdict, UsageError\n"
        "assert all(callable(one) for one in (ncclcheck.bench, ncclcheck.run, bench, preflight, run))\n"
        "assert 'preflight' in dir(ncclcheck) and 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[1])),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'prefight'"):
        ncclcheck.prefight  # type: ignore[attr-defined] # noqa: B018


def test_a_replay_gives_the_report_of_the_command_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = saved_run(tmp_path / "run.json")
    report = ncclcheck.preflight(from_=run, select=["NC1", "peer-filtered"], gpus_per_node=9)
    assert capfd.readouterr() == ("", "")
    words = ["--from", run, "--select", "NC1", "--select", "peer-filtered", "--gpus-per-node", "9"]
    done = subprocess.run(
        [sys.executable, "-m", "ncclcheck", "preflight", *words, "--format", "json"],
        capture_output=True, text=True, check=False, timeout=60, env=clean_environment(),
        cwd=Path(__file__).parents[1],
    )  # fmt: skip
    told, same = json.loads(ncclcheck.to_json(report)), json.loads(done.stdout)
    for document in (told, same):
        for check in document["checks"]:
            del check["seconds"]
    assert told == same
    assert f"exit {report.verdict.exit_code}: " in ncclcheck.to_text(report)


def test_one_node_alone_has_no_pairs_also_from_python(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    alone = ncclcheck.isolate(select="node-slow", slower_than="20%"), ncclcheck.matrix(select="link-outlier")
    assert capfd.readouterr() == ("", "")
    assert [report.verdict.exit_code for report in alone] == [3, 3]
    assert [report.command for report in alone] == ["isolate", "matrix"]
    with pytest.raises(ncclcheck.UsageError, match="--full and --leaves"):
        ncclcheck.matrix(full=True, leaves=True)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_callers_garbage_is_collected_as_before_after_a_run_of_many_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    monkeypatch.setattr(documents, "_OF_MANY_NODES_BYTES", 0)
    run = saved_run(tmp_path / "run.json")
    was_on = gc.isenabled()
    gc.unfreeze()  # other tests of this process read documents, too
    (gc.enable if is_on else gc.disable)()
    try:
        ncclcheck.preflight(from_=run, select="NC1")
        assert (gc.isenabled(), gc.get_freeze_count()) == (is_on, 0)
        with pytest.raises(ncclcheck.UsageError, match="--baseline"):
            ncclcheck.bench(from_=run, baseline=run)
        assert (gc.isenabled(), gc.get_freeze_count()) == (is_on, 0)
    finally:
        (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"nnodes": 0}, "--nnodes '0': expected a whole number from 1"),
        ({"nnodes": 2}, "--nnodes 2 says nothing about which node this is"),
        ({"fail_on": "sometimes"}, "'sometimes' is not one of"),
        ({"select": "no-such-check"}, "--select 'no-such-check': no such check"),
        ({"timeout": float("nan")}, "--timeout 'nan'"),
        ({"from_": "nothing.json"}, "there is no such file"),
    ],
)
def test_wrong_usage_is_the_one_error(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ncclcheck.UsageError) as told:
        ncclcheck.preflight(**options)
    assert sentence in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_a_string_is_one_value_where_several_may_be_given() -> None:
    read = api._as_on_the_command_line("bench", {"ops": "all_reduce", "code": Path("a"), "no_verify": True})
    assert (read["ops"], read["code"], read["no_verify"]) == ((("all_reduce",),), ("a",), True)
    assert "as_is" not in api._as_on_the_command_line("bench", {"as_is": False, "iters": 3})


@pytest.mark.further
@pytest.mark.slow
def test_twice_in_every_rank_of_a_torchrun_job_before_its_own_process_group(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(IN_A_JOB)
    torchrun = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        str(script),
        str(tmp_path / "told-by-rank-"),
    ]
    done = subprocess.run(
        torchrun, capture_output=True, text=True, check=False, timeout=120,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[1]), GLOO_SOCKET_IFNAME="lo"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [json.loads((tmp_path / f"told-by-rank-{rank}").read_text()) for rank in range(2)]
    assert [(one["codes"], one["sum"]) for one in told] == [([0, 0], 2.0)] * 2


@pytest.mark.slow
def test_bench_from_a_script_measures_two_ranks_here() -> None:
    code = (
        "import ncclcheck\n"
        "report = ncclcheck.bench(sizes='64K', ops='all_reduce', budget=2, no_preflight=True)\n"
        "point = report.bench.points[0]\n"
        "assert (point.op, point.size_bytes, point.wrong) == ('all_reduce', 65536, 0), point\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
        env=clean_environment(PYTHONPATH=str(Path(__file__).parents[1])),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
