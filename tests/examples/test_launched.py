"""The batch script and the containers' command as they stand, run on real nodes: they check first, then they train."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from tests.lab.nodes import Lab
from tests.lab.process import wait_all
from tests.lab.slurm import Slurm

pytestmark = [pytest.mark.lab, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
TRAIN = str(ROOT / "examples" / "train.py")


def commands(folder: Path) -> Path:
    """A folder with `ncclcheck` and `torchrun` of this environment, to stand first in PATH."""
    folder.mkdir()
    for name, module in (("ncclcheck", "ncclcheck"), ("torchrun", "torch.distributed.run")):
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} -m {module} "$@"\n'
        )
        script.chmod(0o755)
    return folder


@pytest.mark.further
@pytest.mark.parametrize("name", ["indexed-job.yaml", "watch-jobset.yaml"])
def test_the_containers_command_checks_and_trains_on_two_pods(
    lab: Callable[..., Lab], tmp_path: Path, name: str
) -> None:
    two = lab(2)
    *_, job = yaml.safe_load_all((ROOT / "examples" / "kubernetes" / name).read_text())
    spec = job["spec"] if job["kind"] == "Job" else job["spec"]["replicatedJobs"][0]["template"]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    given = {
        entry["name"]: entry["value"] for entry in container["env"] if "value" in entry
    }  # no Secret here
    pods = {
        **given,
        "MASTER_ADDR": two.nodes[0].address,
        "NNODES": "2",
        "NPROC_PER_NODE": "1",
        "SCRIPT": TRAIN,
        "EVIDENCE": str(tmp_path / "evidence"),
    }
    pods["PATH"] = f"{commands(tmp_path / 'bin')}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    pods["GLOO_SOCKET_IFNAME"] = "eth0"
    started = two.start_all(
        dict.fromkeys(two.nodes, container["command"]),
        pods,
        env_by_node={node: {"JOB_COMPLETION_INDEX": str(place)} for place, node in enumerate(two.nodes)},
    )
    ended = wait_all(list(started.values()), 120)
    assert [finished.returncode for finished in ended] == [0, 0], "\n".join(map(str, ended))
    said = "".join(finished.stdout for finished in ended)
    assert "exit 0: " in said
    assert "loss" in said
    kept = "".join(file.read_text() for file in (tmp_path / "evidence").glob("*/stdout.log"))
    assert ("loss" in kept) == (name == "watch-jobset.yaml")


@pytest.mark.further
@pytest.mark.parametrize("script", ["train.sbatch", "watch.sbatch"])
def test_the_batch_script_checks_and_trains(
    lab: Callable[..., Lab], slurm: Callable[..., Slurm], tmp_path: Path, script: str
) -> None:
    two = lab(2)
    cluster = slurm(two)
    environment = {
        **cluster.env,
        "PATH": f"{commands(tmp_path / 'bin')}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "GPUS": "1",
        "SCRIPT": TRAIN,
        "GLOO_SOCKET_IFNAME": "eth0",
    }
    batch = str(ROOT / "examples" / "slurm" / script)
    # What this cluster has not: GPUs, and 64 CPUs a node.
    options = [
        "--nodes=2",
        "--gpus-per-node=0",
        "--cpus-per-task=1",
        "--wait",
        f"--output={tmp_path}/job.out",
    ]
    submitted = two.nodes[0].run(
        ["sbatch", *options, f"--chdir={tmp_path}", batch], environment, timeout_s=120
    )
    said = (tmp_path / "job.out").read_text()
    assert submitted.returncode == 0, said
    assert "exit 0: " in said
    assert "loss" in said
    assert len(list(tmp_path.glob("preflight-*.json"))) == (script == "train.sbatch")
    assert ("watch: evidence of a hang" in said) == (script == "watch.sbatch")
    assert "watched alone" not in said


class Measures(Struct, frozen=True):
    """What a batch script is told here, the files that it leaves, and words that it says."""

    settings: dict[str, str]
    leaves: tuple[str, ...]
    says: str
    nodes: int = 2


MEASURING = {
    "soak.sbatch": Measures(
        {"DURATION": "30s", "EVERY": "1s"}, ("soak-*.html", "soak-soak/blocks.jsonl"), "soak: "
    ),
    "try.sbatch": Measures(
        {"SIZES": "64K", "ARMS": "GLOO_SOCKET_IFNAME=eth0"},
        ("try-*.json", "tuner-*.csv"),
        "GLOO_SOCKET_IFNAME=eth0",
    ),
    "isolate.sbatch": Measures({"SIZE": "256K"}, ("isolate-*.json", "isolate-*.html"), " pair"),
    "matrix.sbatch": Measures({"SIZE": "256K"}, ("matrix-*.html", "hosts-*"), "matrix: ", nodes=4),
    "mesh.sbatch": Measures({"MESH": "dp=2", "SIZES": "64K"}, ("placement-*.json", "mesh-*.html"), "dp"),
}


@pytest.mark.further
@pytest.mark.parametrize("script", MEASURING)
def test_the_batch_script_measures(
    lab: Callable[..., Lab], slurm: Callable[..., Slurm], tmp_path: Path, script: str
) -> None:
    told = MEASURING[script]
    nodes = lab(told.nodes)
    cluster = slurm(nodes)
    environment = {
        **cluster.env,
        **told.settings,
        "PATH": f"{commands(tmp_path / 'bin')}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "GLOO_SOCKET_IFNAME": "eth0",
    }
    batch = str(ROOT / "examples" / "slurm" / script)
    options = [f"--nodes={told.nodes}", "--gpus-per-node=0", "--wait", f"--output={tmp_path}/job.out"]
    nodes.nodes[0].run(["sbatch", *options, f"--chdir={tmp_path}", batch], environment, timeout_s=300)
    said = (tmp_path / "job.out").read_text()
    for name in told.leaves:
        assert len(list(tmp_path.glob(name))) == 1, said
    assert told.says in said
    assert "exit 2: " not in said
