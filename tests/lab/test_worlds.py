"""ncclcheck on machines that lack something: no fault of ncclcheck's own, and the verdict that a job would bear out."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable

import pytest

from tests.lab.launched import command, flags, job_environment, read, report_file, told
from tests.lab.nodes import Lab
from tests.lab.worlds import WORLDS, World

pytestmark = pytest.mark.lab

# Of these every run is a test; the rest widen the coverage, and run where time is left.
_ALWAYS = ("folder-removed",)


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(world, id=world.name, marks=() if world.name in _ALWAYS else pytest.mark.further)
        for world in WORLDS
    ],
)
def test_a_stripped_machine_gets_its_verdict(lab: Callable[..., Lab], world: World) -> None:
    two = lab(2)
    for folder in (two.folder, *two.folder.glob("node*"), *two.folder.glob("node*/*")):
        folder.chmod(0o777)  # some worlds have another user
    commands = {}
    for node in two.nodes:
        words = [*command(node, "preflight"), *flags(two, node)]
        commands[node] = world.command(words) if world.both or node.rank else words
    ended = told(two, two.start_all(commands, job_environment(), fresh=True))
    assert {node.code for node in ended.values()} <= set(world.exits), ended
    for end in ended.values():
        assert "Traceback" not in end.finished.stderr, end.finished
    if world.writes:
        found = {slug for end in ended.values() for slug in end.slugs}
        assert world.slugs <= found, ended
        assert not world.wrong & found, ended
    assert two.leftovers() == ()


@pytest.mark.parametrize(
    ("limit_kib", "exit_code", "reason"),
    [
        pytest.param(400_000, 1, "ulimit -v is 390 MiB", id="torch-cannot-be-imported"),
        # A bare `import torch` succeeds here: whether the job has room is not told.
        pytest.param(700_000, 3, "ulimit -v is 683 MiB", id="no-room-beside-us", marks=pytest.mark.further),
        pytest.param(1_200_000, 3, "ulimit -v is 1171 MiB", id="little-room", marks=pytest.mark.further),
    ],
)
@pytest.mark.further
def test_a_node_without_memory_for_torch_is_named_with_that_reason(
    lab: Callable[..., Lab], limit_kib: int, exit_code: int, reason: str
) -> None:
    three = lab(3)
    poor = three.nodes[2]
    commands = {node: [*command(node, "preflight"), *flags(three, node)] for node in three.nodes}
    commands[poor] = ["sh", "-c", f'ulimit -v {limit_kib}; exec "$@"', "sh", *commands[poor]]
    ended = told(three, three.start_all(commands, job_environment(), fresh=True))
    assert {node.code for node in ended.values()} == {exit_code}, ended
    assert all(not node.finished.timed_out and node.finished.seconds < 30 for node in ended.values()), ended
    for name in ("node1", "node3"):
        finding = ended[name].finding("torch-unusable")
        assert finding["hosts"] == ["node3"]
        assert reason in finding["summary"]


@pytest.mark.further
@pytest.mark.parametrize("streams", ["1", "1 2"])
def test_a_reader_that_takes_nothing_holds_up_no_verdict(lab: Callable[..., Lab], streams: str) -> None:
    two = lab(2)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # a report as JSON has more
    first, second = two.nodes
    words = [*command(first, "preflight", "--format", "json"), *flags(two, first)]
    onto = " ".join(f"{stream}>/dev/fd/{writer}" for stream in streams.split())
    slow = first.start(
        ["sh", "-c", f'exec "$@" {onto}', "sh", *words], job_environment(), pass_fds=(writer,), fresh=True
    )
    quick = second.start([*command(second, "preflight"), *flags(two, second)], job_environment())
    os.close(writer)
    ended = read(second, quick.wait(90))
    assert ended.code == 0, ended
    assert slow.alive  # it still holds what nobody has read
    assert json.loads(report_file(first).read_text())["verdict"]["exit_code"] == 0
    with os.fdopen(reader, "rb") as stream:
        shown = stream.read()
    assert slow.wait(30).returncode == 0
    if streams == "1":
        assert json.loads(shown)["verdict"]["exit_code"] == 0
