"""The model against the real NCCL: random machines, settings and config files; not one disagreement."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ncclcheck.model.codec import decode, encode
from ncclcheck.nccl import environment, socket_interface
from tests.further import mostly_further
from tests.lab import namespaces
from tests.nccl import random_worlds
from tests.nccl.library_oracle import Answer, Answers, Question

WORLDS = int(os.environ.get("NCCLCHECK_TEST_NCCL_WORLDS", "100"))
QUESTIONS = 10  # an answer takes about 20 ms; a new machine tells more than further questions to the same one
SEED = int(os.environ.get("NCCLCHECK_TEST_SEED", "20251"))
ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "NCCLCHECK_TEST_NCCL_LIBRARIES"


def libraries() -> list[Path]:
    """The real libraries to compare with: those that the variable names, else the one of NVIDIA's wheel."""
    if named := os.environ.get(VARIABLE):
        return [Path(path) for path in named.split(":") if path]
    wheel = importlib.util.find_spec("nvidia")
    folders = list(wheel.submodule_search_locations or ()) if wheel else []
    return [path for folder in folders if (path := Path(folder, "nccl/lib/libnccl.so.2")).is_file()]


@pytest.fixture
def namespace() -> Iterator[str]:
    name = namespaces.new_prefix() + "world"
    try:
        yield name
    finally:
        namespaces.delete([name])


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("world", mostly_further(range(WORLDS), 12))  # mark.further
def test_the_model_chooses_what_the_real_library_chooses(world: int, namespace: str, tmp_path: Path) -> None:
    found = libraries()
    if not found:
        pytest.skip(f"no libnccl.so.2: pip install nvidia-nccl-cu12, or set {VARIABLE} to paths of libraries")
    random = Random(SEED + world)  # noqa: S311 - worlds, not secrets
    build(namespace, random_worlds.network(random))
    questions = tuple(random_worlds.question(random) for _ in range(QUESTIONS))
    for library in found:
        folder = tmp_path / f"{found.index(library)}"
        folder.mkdir()
        asked = ask(namespace, library, folder, questions)
        wrong = [
            text
            for question, answer in zip(questions, asked.answers, strict=True)
            if (text := disagreement(asked, question, answer, folder))
        ]
        assert not wrong, f"world {SEED + world}, {len(wrong)} of {len(questions)}:\n" + "\n".join(wrong[:3])


def build(namespace: str, lines: list[str]) -> None:
    """The namespace is there, with its interfaces; addresses never wait for duplicate detection."""
    namespaces.ip([f"netns add {namespace}"])
    namespaces.call(namespaces.inside(namespace, ["sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"]))
    is_dormant = {line: " mode dormant" in line for line in lines}
    namespaces.ip([line for line in lines if not is_dormant[line]], namespace=namespace)
    namespaces.ip([line for line in lines if is_dormant[line]], namespace=namespace)


def ask(namespace: str, library: Path, folder: Path, questions: tuple[Question, ...]) -> Answers:
    """The library's answers, all given while no interface changed its state (the kernel settles within 1 s)."""
    argv = [sys.executable, "-m", "tests.nccl.library_oracle", str(library), str(folder)]
    for _ in range(5):
        done = subprocess.run(
            namespaces.inside(namespace, argv),
            input=encode(questions),
            capture_output=True,
            timeout=60,
            check=False,
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stderr.decode()
        answers = decode(done.stdout, Answers)
        if answers.before == answers.after:
            return answers
    raise AssertionError("the interfaces never settled")


def disagreement(asked: Answers, question: Question, answer: Answer, folder: Path) -> str:
    """Empty, or both choices with all that is needed to repeat the question."""
    own = {name: value.replace("FOLDER", str(folder)) for name, value in question.environment.items()}
    facts = own, answer.config_files, asked.version
    if environment.unknown_file(*facts, home_set="HOME" in own):
        return ""
    effective = environment.effective(*facts, home_set="HOME" in own)
    choice = socket_interface.choose(asked.before, effective, asked.version)
    ours = (choice.interface, choice.address, choice.result_code)
    code = answer.result_code
    if code == socket_interface.SYSTEM_ERROR and answer.interface is not None:
        code = 0  # it made its choice, and could then not bind it
    theirs = (answer.interface, answer.address, code)
    if ours == theirs:
        return ""
    return f"NCCL {asked.version}: {theirs}, model: {ours}\n  {question}\n  {effective}\n  {asked.before}\n{answer.log}"
