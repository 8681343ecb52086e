"""What scontrol prints, as Slurm 22.05 and later print it, and what it is given."""

from __future__ import annotations

import pytest

from ncclcheck.cli.slurm_health.decision import OWN_REASON
from ncclcheck.cli.slurm_health.scontrol import drain_words, harmless, read_node, resume_words

LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUTot=8 NodeAddr=10.78.0.1 NodeHostName=node1 "
    "OS=Linux 6.1.0 #1 SMP State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=lab "
    "BootTime=2026-11-22T19:00:00 LastBusyTime=2026-11-22T19:30:00 ExtSensorsJoules=n/s ExtSensorsWatts=0{end}"
)


@pytest.mark.parametrize(
    ("state", "states"),
    [
        ("IDLE", {"IDLE"}),
        ("IDLE+DRAIN", {"IDLE", "DRAIN"}),
        ("MIXED+CLOUD+DRAIN", {"MIXED", "CLOUD", "DRAIN"}),
        ("DOWN*+DRAIN", {"DOWN", "DRAIN"}),
        ("IDLE~", {"IDLE"}),
    ],
)
def test_the_state_is_read(state: str, states: set[str]) -> None:
    node = read_node(LINE.format(name="node1", state=state, end=""))
    assert node is not None
    assert node.name == "node1"
    assert node.states == states
    assert node.reason == ""


@pytest.mark.parametrize("after", ["", " Comment=rack 7", " Extra=a=b ResumeAfterTime=None"])
def test_the_reason_is_read_with_its_time(after: str) -> None:
    end = f" Reason=ncclcheck node: 1 error: gpu-ecc on node1 [root@2026-11-22T10:00:00]{after}"
    node = read_node(LINE.format(name="node1", state="IDLE+DRAIN", end=end))
    assert node is not None
    assert node.reason == "ncclcheck node: 1 error: gpu-ecc on node1"
    assert node.reason_since == "2026-11-22T10:00:00"
    assert node.is_ours


def test_a_reason_without_a_time_and_one_that_only_mentions_us_are_read() -> None:
    node = read_node(LINE.format(name="n", state="IDLE+DRAIN", end=" Reason=Not responding"))
    assert node is not None
    assert node.reason == "Not responding"
    quoted = read_node(
        LINE.format(
            name="n", state="DOWN+DRAIN", end=" Reason=not by ncclcheck node: me [ann@2026-11-22T10:00:00]"
        )
    )
    assert quoted is not None
    assert not quoted.is_ours


@pytest.mark.parametrize("line", ["", "slurm_load_node: Unable to contact slurm controller", "State=IDLE"])
def test_another_line_is_no_node(line: str) -> None:
    assert read_node(line) is None


def test_a_reason_is_one_argument_that_scontrol_reads_as_text() -> None:
    hostile = f'{OWN_REASON}x\' State=RESUME\nNodeName=ALL "$(reboot)" [root@now] \x1b[31m é {"y" * 300}'
    words = drain_words("node1", hostile)
    assert words[:4] == ["scontrol", "update", "NodeName=node1", "State=DRAIN"]
    assert len(words) == 5
    reason = words[4].removeprefix("Reason=")
    assert reason == harmless(hostile)
    assert reason.startswith(OWN_REASON)
    assert len(reason) <= 200
    assert not set("='\"\n[]\x1b") & set(reason)
    assert resume_words("node1") == ["scontrol", "update", "NodeName=node1", "State=RESUME"]
