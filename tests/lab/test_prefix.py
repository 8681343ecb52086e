"""`ncclcheck preflight -- COMMAND` on real nodes: it trains where all is well, and starts nothing where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.lab import faults
from tests.lab.launched import PORT, Told, job_environment, read, report_file, told
from tests.lab.launchers import substituted
from tests.lab.namespaces import ETC
from tests.lab.nodes import PYTHON, REPOSITORY, Lab, Node
from tests.lab.process import wait_all
from tests.lab.slurm import Slurm

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LabOf = Callable[..., Lab]

TRAIN = REPOSITORY / "examples" / "train.py"
TORCHRUN = [PYTHON, "-m", "torch.distributed.run", "--nnodes={nnodes}"]
STATIC = [*TORCHRUN, "--node-rank={node_rank}", "--master-addr={master_addr}"]
C10D = [*TORCHRUN, "--rdzv-backend=c10d", "--rdzv-id=lab"]
NAMES = {"GLOO_SOCKET_IFNAME": "eth0"}  # the lab's names may lead to loopback, which is not the question here


def prefixed(
    lab: Lab,
    command: Sequence[str],
    *options: str,
    env: Mapping[str, str] | None = None,
    env_by_node: Mapping[Node, Mapping[str, str]] | None = None,
) -> dict[str, Told]:
    """How `ncclcheck preflight OPTIONS -- COMMAND` ended on every node."""
    words = {
        node: [
            *[
                PYTHON,
                "-m",
                "ncclcheck",
                "preflight",
                *options,
                "--output",
                str(node.folder / "home" / "report.json"),
            ],
            *["--", *substituted(lab, node, command)],
        ]
        for node in lab.nodes
    }
    started = lab.start_all(words, job_environment({**NAMES, **(env or {})}), env_by_node=env_by_node)
    ended = wait_all(list(started.values()), 120)
    return {finished.node: read(lab[finished.node], finished) for finished in ended}


def program(lab: Lab) -> None:
    """Each node has a code/train.py of its own, which leaves a word when it is started and then trains."""
    for node in lab.nodes:
        folder = node.folder / "home" / "code"
        folder.mkdir()
        (folder / "model.py").write_text(TRAIN.read_text())
        (folder / "train.py").write_text(
            "import os\nopen(os.environ['HOME'] + '/started', 'w').close()\nimport model\nmodel.main()\n"
        )


def started(lab: Lab) -> list[str]:
    return [node.name for node in lab.nodes if (node.folder / "home" / "started").exists()]


def stopped(lab: Lab, outcomes: Mapping[str, Told], within_s: float = 30.0) -> None:
    """Nobody started the job, and it took seconds to say so."""
    assert started(lab) == []
    for outcome in outcomes.values():
        assert outcome.code == 1, str(outcome.finished)
        assert outcome.finished.seconds <= within_s
    assert lab.leftovers() == ()


def test_three_nodes_train_a_model(lab: LabOf) -> None:
    three = lab(3)
    program(three)
    outcomes = prefixed(three, [*STATIC, "code/train.py", "--steps", "30"])
    assert [outcome.code for outcome in outcomes.values()] == [0, 0, 0], [
        str(outcome.finished) for outcome in outcomes.values()
    ]
    assert "trained on 3 ranks: loss 0.6" in outcomes["node1"].finished.stdout
    assert started(three) == ["node1", "node2", "node3"]
    report = outcomes["node2"].report
    assert report is not None
    launches = [node["facts"]["launch"] for node in report["nodes"]]
    assert [launch["source"] for launch in launches] == ["launch-line"] * 3
    assert [path["path"] for path in report["nodes"][2]["facts"]["code"]["paths"]] == ["code"]
    assert three.leftovers() == ()


@pytest.mark.further
def test_two_nodes_train_a_model_by_c10d_wherever_the_endpoint_is(lab: LabOf) -> None:
    two = lab(2)
    program(two)
    outcomes = prefixed(two, [*C10D, "--rdzv-endpoint=node2", "code/train.py", "--steps", "30"])
    assert [outcome.code for outcome in outcomes.values()] == [0, 0], [
        str(outcome.finished) for outcome in outcomes.values()
    ]
    assert "trained on 2 ranks" in "".join(outcome.finished.stdout for outcome in outcomes.values())
    report = outcomes["node1"].report
    assert report is not None
    assert [(node["host"], node["node_rank"]) for node in report["nodes"]] == [("node2", 0), ("node1", 1)]
    assert two.leftovers() == ()


def test_a_blocked_port_differing_code_and_a_trap_stop_it_with_the_cause(lab: LabOf) -> None:
    three = lab(3, docker=True)
    program(three)
    command = [*STATIC, "code/train.py"]
    trap = prefixed(three, command, env_by_node={three["node2"]: {"NCCL_SOCKET_IFNAME": "^eth"}})
    stopped(three, trap)
    assert trap["node1"].slugs & {"ifname-excludes-into-loopback", "interface-loopback", "interface-virtual"}

    (three["node3"].folder / "home" / "code" / "model.py").write_text("print('an older one')\n")
    differing = prefixed(three, command)
    stopped(three, differing)
    assert differing["node1"].finding("code-differs")["hosts"] == ["node3"]

    faults.drop(three["node1"], PORT)
    blocked = prefixed(three, command)
    stopped(three, blocked)
    assert blocked["node2"].finding("master-filtered")["hosts"] == ["node2"]


@pytest.mark.further
def test_the_traps_of_c10d_are_named_before_torch_hangs(lab: LabOf) -> None:
    three = lab(3)
    program(three)
    for node in three.nodes:
        node.set_hosts({**three.healthy_hosts, "alias": three["node1"].address})
    three["node1"].set_hosts({**three.healthy_hosts, "node1": "127.0.1.1", "alias": three["node1"].address})
    nobody = prefixed(three, [*C10D, "--rdzv-endpoint=alias:29400", "code/train.py"])
    stopped(three, nobody)
    assert nobody["node1"].finding("rendezvous-host")["hosts"] == ["node1"]

    full_name = "aa.cluster.internal"  # sorts first, so this node gets rank 0
    others = {node.name: node.address for node in three.nodes[:2]}
    for node in three.nodes:
        node.set_hosts({**three.healthy_hosts, full_name: three["node3"].address})
    hosts = ETC / three["node3"].namespace / "hosts"
    lines = [f"{address} {name}" for name, address in others.items()]
    hosts.write_text(
        "\n".join(["127.0.0.1 localhost", *lines, f"{three['node3'].address} {full_name} node3\n"])
    )
    three["node2"].set_hosts({**three.healthy_hosts})
    unnamed = prefixed(three, [*C10D, "--rdzv-endpoint=node1:29400", "code/train.py"])
    stopped(three, unnamed)
    finding = unnamed["node1"].finding("rendezvous-name")
    assert finding["hosts"] == ["node2"]
    assert full_name in finding["summary"]


def of_each(lab: Lab, commands: Mapping[str, Sequence[str]]) -> dict[str, Told]:
    """How the prefix ended on the nodes that have a command of their own; the others never start."""
    words = {
        lab[name]: [
            *[
                PYTHON,
                "-m",
                "ncclcheck",
                "preflight",
                "--join-timeout",
                "12",
                "--output",
                str(report_file(lab[name])),
            ],
            *["--", *substituted(lab, lab[name], command)],
        ]
        for name, command in commands.items()
    }
    return told(lab, lab.start_all(words, job_environment(NAMES)))


def test_nodes_with_another_rendezvous_id_are_named_with_both(lab: LabOf) -> None:
    two = lab(2)
    program(two)
    line = [*TORCHRUN, "--rdzv-backend=c10d", "--rdzv-endpoint=node1", "code/train.py"]
    ids = {
        name: [*line[:-1], f"--rdzv-id={number}", line[-1]]
        for name, number in (("node1", "a"), ("node2", "b"))
    }
    ended = of_each(two, ids)
    stopped(two, ended)
    for outcome in ended.values():
        finding = outcome.finding("rendezvous-id")
        assert finding["hosts"] == ["node2"]
        assert "node2 came with --rdzv-id b, node1 with a" in finding["summary"]
        assert "master-foreign" not in outcome.slugs


@pytest.mark.further
def test_a_node_that_never_comes_to_the_rendezvous_is_silent_and_no_fault_of_its_host(lab: LabOf) -> None:
    two = lab(2)
    program(two)
    ended = of_each(two, {"node1": [*C10D, "--rdzv-endpoint=node1", "code/train.py"]})
    assert ended["node1"].code == 3, str(ended["node1"].finished)
    assert ended["node1"].slugs == {"node-silent"}
    assert started(two) == []


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param([PYTHON, "-m", "torch.distributed.launch", "--nnodes=2"], id="launch"),
        pytest.param([*TORCHRUN], id="torchrun", marks=pytest.mark.further),
    ],
)
def test_two_nodes_without_a_node_rank_both_claim_0(lab: LabOf, launcher: list[str]) -> None:
    two = lab(2)
    program(two)
    line = [*launcher, "--master-addr=node1", "code/train.py"]
    ended = of_each(two, {"node1": line, "node2": line})
    stopped(two, ended)
    for outcome in ended.values():
        assert set(outcome.finding("rank-duplicate")["hosts"]) == {"node1", "node2"}
        assert outcome.slugs.isdisjoint({"rendezvous-host", "master-foreign", "master-not-first-node"})


@pytest.mark.further
def test_under_srun_a_plain_script_trains_or_is_not_started(
    lab: LabOf, slurm: Callable[[Lab], Slurm], tmp_path: Path
) -> None:
    two = lab(2)
    cluster = slurm(two)
    (tmp_path / "code").mkdir()
    script = tmp_path / "code" / "train.py"
    script.write_text(TRAIN.read_text())
    master = {"MASTER_ADDR": two["node1"].address, "MASTER_PORT": str(PORT)}
    words = [PYTHON, "-m", "ncclcheck", "preflight", "--output", str(tmp_path / "report.json")]
    words += ["--", PYTHON, str(script), "--steps", "20"]
    ended = cluster.srun(words, {**NAMES, **master}, options=["-n4"])
    assert ended.returncode == 0, str(ended)
    assert "trained on 4 ranks" in ended.stdout
    assert ended.stdout.count("exit 0") == 1
    assert (
        json.loads((tmp_path / "report.json").read_text())["nodes"][1]["facts"]["launch"]["source"] == "slurm"
    )

    sick = cluster.srun(words, {**NAMES, **master, "NCCL_SOCKET_IFNAME": "^eth0"}, options=["-n4"])
    assert sick.returncode == 1, str(sick)
    assert "trained" not in sick.stdout
    assert "ifname-excludes-into-loopback" in sick.stdout
