"""The examples for node-problem-detector, systemd and cron: what their owners' formats want, and that they run."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ncclcheck.cli.main import command
from ncclcheck.timeouts import NODE_TIMEOUT_S
from tests.cli.command_line import clean_environment, saved_run
from tests.report.fleet.prometheus import PROMTOOL_MISSING, complaints_of_promtool, promtool, value

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_GO_DURATION = re.compile(r"(\d+)(s|m)")


def ncclcheck_in(folder: Path) -> Path:
    """`ncclcheck` of this environment under a path of its own."""
    script = folder / "ncclcheck"
    script.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m ncclcheck "$@"\n')
    script.chmod(0o755)
    return script


def seconds(duration: str) -> int:
    match = _GO_DURATION.fullmatch(duration)
    assert match is not None, duration
    return int(match[1]) * (60 if match[2] == "m" else 1)


def plugin_monitor() -> dict[str, Any]:
    config: dict[str, Any] = json.loads((EXAMPLES / "node-problem-detector" / "ncclcheck.json").read_text())
    return config


def test_the_plugin_monitor_is_what_node_problem_detector_takes() -> None:
    """The rules of CustomPluginConfig.Validate (pkg/custompluginmonitor/types/config.go)."""
    config = plugin_monitor()
    assert set(config) == {"plugin", "pluginConfig", "source", "metricsReporting", "conditions", "rules"}
    assert config["plugin"] == "custom"
    limit_s = seconds(config["pluginConfig"]["timeout"])
    assert config["pluginConfig"]["max_output_length"] == 80
    conditions = {condition["type"] for condition in config["conditions"]}
    for rule in config["rules"]:
        assert rule["type"] in ("temporary", "permanent")
        assert rule["condition"] in conditions
        assert seconds(rule["timeout"]) <= limit_s  # a longer one is an error
        assert NODE_TIMEOUT_S < seconds(rule["timeout"]) <= seconds(config["pluginConfig"]["invoke_interval"])
        assert Path(rule["path"]).name == "check-node"


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--gpus-per-node", "64"), 1), (("--wrong",), 2)])
def test_the_plugin_answers_as_node_problem_detector_reads_it(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    saved = saved_run(tmp_path / "run.json")
    done = subprocess.run(
        [EXAMPLES / "node-problem-detector" / "check-node", "--from", saved, *options],
        env=clean_environment(NCCLCHECK=str(ncclcheck_in(tmp_path))),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done
    assert done.stdout.count("\n") == 1
    assert 0 < len(done.stdout.encode()) <= 81


def command_lines() -> dict[str, str]:
    """What the service and cron run."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's own names
    unit.read(EXAMPLES / "prometheus" / "ncclcheck-node.service")
    cron = (EXAMPLES / "prometheus" / "ncclcheck.cron").read_text().splitlines()[-1]
    assert cron.split()[5] == "root"
    assert int(unit["Service"]["TimeoutStartSec"]) > NODE_TIMEOUT_S
    return {
        "systemd": unit["Service"]["ExecStart"],
        "cron": " ".join(cron.split()[6:]).partition(" >")[0],
    }


@pytest.mark.parametrize("source", ["systemd", "cron"])
def test_the_timers_write_metrics_that_prometheus_takes(source: str, tmp_path: Path) -> None:
    _, *words = shlex.split(command_lines()[source])
    target = tmp_path / "ncclcheck.prom"
    words[words.index("--output") + 1] = str(target)
    done = subprocess.run(
        [ncclcheck_in(tmp_path), *words, "--from", saved_run(tmp_path / "run.json")],
        env=clean_environment(),
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: os.umask(0o077) and None,
    )
    assert done.returncode == 0, done
    assert target.stat().st_mode & 0o777 == 0o644
    assert value(target.read_text(), "exit_code") == 0
    if promtool() is None:
        pytest.skip(PROMTOOL_MISSING)
    assert complaints_of_promtool(target.read_text()) == ""


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_takes_the_units() -> None:
    units = [str(EXAMPLES / "prometheus" / f"ncclcheck-node.{kind}") for kind in ("service", "timer")]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert complaints == []


def test_every_command_line_is_one_that_the_program_takes() -> None:
    for line in command_lines().values():
        name, *words = shlex.split(line)[1:]
        command.commands[name].make_context(name, words)
