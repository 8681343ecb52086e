"""--slurm-health with a scontrol that fails or hangs: what is done, what is said, and when nothing is done.

What a real Slurm does with it is in tests/lab/test_slurm_health.py.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from ncclcheck.cli.slurm_health import act as acting
from ncclcheck.cli.slurm_health.act import HealthRequest, act, health_request
from ncclcheck.model.errors import UsageError
from ncclcheck.model.report import Report
from tests.report.reports import check_run, finding, found, report

GOOD = report([check_run("node-silent", code="NC101")])
BAD = report([found(finding("gpu-ecc", "node1", code="NC404"))])
UNKNOWN = report([])
# A cluster of 16 nodes in a folder: a file per node with its state and reason.
SCONTROL = """#!/bin/sh
echo "$*" >> {folder}/calls
case "$1 $2 $3" in
"show --oneliner node") cat {folder}/$4 ;;
"show --oneliner nodes") cat {folder}/node* ;;
update*)
    name=${{2#NodeName=}}
    if [ "$3" = State=DRAIN ]; then
        echo "NodeName=$name State=IDLE+DRAIN $4 [root@2026-11-22T10:00:00]" > {folder}/$name
        [ ! -e {folder}/others ] || . {folder}/others
    else
        echo "NodeName=$name State=IDLE " > {folder}/$name
    fi ;;
esac
"""


class Cluster:
    """A stand-in for scontrol and its cluster, and what was said. State: its files, and the lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cluster"
        self.folder.mkdir()
        self.script = folder / "bin" / "scontrol"
        self.script.parent.mkdir()
        self.write(SCONTROL.format(folder=self.folder))
        for number in range(1, 17):
            (self.folder / f"node{number}").write_text(f"NodeName=node{number} State=IDLE \n")
        self.request = HealthRequest("node1", str(folder / "state"))
        self.said: list[str] = []

    def write(self, script: str) -> None:
        self.script.write_text(script)
        self.script.chmod(0o755)

    def act(self, *reports: Report, **changes: object) -> bool:
        return [act(made, replace(self.request, **changes), self.said.append) for made in reports][-1]

    @property
    def updates(self) -> list[str]:
        calls = self.folder / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        return [line for line in lines if line.startswith("update")]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(tmp_path)
    for name in ("cat", "sleep"):  # and nothing else: where Slurm is installed, its scontrol would be found
        (made.script.parent / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(made.script.parent))
    monkeypatch.setattr(acting, "SLURM_SETTLE_S", 0.0)
    return made


def test_it_drains_with_the_finding_as_the_reason_and_resumes(cluster: Cluster) -> None:
    assert cluster.act(BAD, BAD)
    (drain,) = cluster.updates
    assert drain == "update NodeName=node1 State=DRAIN Reason=ncclcheck node: 1 error: gpu-ecc on node1"
    assert cluster.act(BAD, GOOD, GOOD, GOOD)
    assert cluster.updates == [drain, "update NodeName=node1 State=RESUME"]


def test_an_inconclusive_run_is_not_counted_and_asks_slurm_nothing(cluster: Cluster) -> None:
    assert cluster.act(UNKNOWN)
    assert not (cluster.folder / "calls").exists()
    assert cluster.act(BAD, UNKNOWN, UNKNOWN, BAD)
    assert len(cluster.updates) == 1


def test_a_dry_run_prints_the_command_and_changes_nothing(cluster: Cluster) -> None:
    assert cluster.act(BAD, BAD, BAD, dry_run=True)
    assert cluster.updates == []
    command = "scontrol update NodeName=node1 State=DRAIN 'Reason=ncclcheck node: 1 error: gpu-ecc on node1'"
    assert f"slurm: would run: {command} (2 bad of the last 2 results)" in cluster.said


def test_where_enough_nodes_are_drained_by_us_it_drains_no_further(cluster: Cluster) -> None:
    (cluster.folder / "node9").write_text(
        "NodeName=node9 State=IDLE+DRAIN Reason=ncclcheck node: x [root@2026-11-22T09:00:00]\n"
    )
    assert cluster.act(BAD, BAD, BAD)
    assert cluster.updates == []
    assert "1 of 16 nodes are drained by ncclcheck, and 1 may be" in cluster.said[-1]
    assert cluster.act(BAD, most_percent=20)
    assert len(cluster.updates) == 1


def test_of_nodes_that_drain_at_the_same_moment_those_beyond_the_cap_are_given_back(cluster: Cluster) -> None:
    line = "NodeName=node0 State=IDLE+DRAIN Reason=ncclcheck node: x [root@2026-11-22T09:59:59]"
    (cluster.folder / "others").write_text(f"echo '{line}' > {cluster.folder}/node0\n")
    assert cluster.act(BAD, BAD)
    assert cluster.updates[-1] == "update NodeName=node1 State=RESUME"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            "#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n",
            "Unable to contact slurm controller",
        ),
        ("#!/bin/sh\necho nonsense\n", "shows no node"),
        ("#!/nonexistent\n", "No such file"),
        ("#!/bin/sh\nexec sleep 60\n", "no answer"),
    ],
)
def test_a_slurm_that_does_not_answer_changes_nothing_and_is_told(
    script: str, why: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncclcheck.cli.slurm_health.scontrol.SCONTROL_S", 1.0)
    cluster.write(script)
    started = time.monotonic()
    assert not cluster.act(BAD)
    assert not cluster.act(BAD)
    assert time.monotonic() - started < 20
    assert why in cluster.said[-1]
    assert cluster.updates == []


def test_a_history_that_may_be_somebody_elses_changes_nothing(cluster: Cluster) -> None:
    assert cluster.act(BAD)
    Path(cluster.request.folder).chmod(0o777)
    assert not cluster.act(BAD)
    assert cluster.updates == []
    assert "nobody else can write to" in cluster.said[-1]


def test_who_this_node_is_and_what_contradicts() -> None:
    given = {"slurm_health": True}
    made = health_request(given, {"SLURMD_NODENAME": "gpu-7"}, "host.example")
    assert made == HealthRequest("gpu-7", "/run/ncclcheck", 10, dry_run=False)
    plain = health_request({**given, "max_drained": 30, "dry_run": True}, {}, "host.example")
    assert plain == HealthRequest("host", "/run/ncclcheck", 30, dry_run=True)
    assert health_request({}, {}, "host") is None
    for wrong in ({"dry_run": True}, {"max_drained": 5}, {"state_dir": "x"}, {**given, "from_": "run.json"}):
        with pytest.raises(UsageError, match="--slurm-health"):
            health_request(wrong, {}, "host")
