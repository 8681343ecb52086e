"""pip's own check, and the imports in a new interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ncclcheck.facts.child import ChildResult
from ncclcheck.facts.image.image_child import _nccl_text
from ncclcheck.facts.image.image_packages import pip_problems, problems_in, read_imports
from ncclcheck.model.fact import Missing
from tests.fact_builders import some

TORCH = """
class version:
    cuda = "12.8"
class _C:
    _cuda_getArchFlags = staticmethod(lambda: "sm_80 sm_90 compute_90")
    _nccl_version = staticmethod(lambda: 2 << 32 | 27 << 16 | 5)
"""


def with_modules(monkeypatch: pytest.MonkeyPatch, folder: Path, **modules: str) -> None:
    """A search path on which these modules come first, for a child too."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


def test_torch_tells_how_it_was_built_and_a_broken_module_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_modules(monkeypatch, tmp_path, torch=TORCH, netifaces="raise OSError('no libc')")
    imported = read_imports(os.environ, 30.0)
    build = some(imported.torch)
    assert (build.cuda, build.nccl, build.architectures) == (
        "12.8",
        "2.27.5",
        ("sm_80", "sm_90", "compute_90"),
    )
    assert imported.failed == {"netifaces": "OSError: no libc"}


def test_a_torch_that_ends_the_process_or_fails_is_no_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_modules(monkeypatch, tmp_path, torch="raise SystemExit(0)")
    imported = read_imports(os.environ, 30.0)
    assert isinstance(imported.torch, Missing)
    assert "torch" in some(imported.failed)


def test_a_torch_that_hangs_or_dies_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_modules(monkeypatch, tmp_path, torch="import os; os.write(2, b'no libc'); os.abort()")
    imported = read_imports(os.environ, 30.0)
    assert isinstance(imported.torch, Missing)
    assert "torch cannot be imported" in imported.torch.detail
    assert imported.failed == {"torch": "the import ends the process (signal 6): no libc"}
    asked = TORCH + "    _nccl_version = staticmethod(lambda: __import__('os')._exit(3))\n"
    with_modules(monkeypatch, tmp_path, torch=asked)
    assert "ended with exit code 3" in str(read_imports(os.environ, 30.0).failed)


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (ChildResult(0, b"No broken requirements found.\n", b""), ()),
        (
            ChildResult(1, b"a 1 requires b, which is not installed.\n\n", b""),
            ("a 1 requires b, which is not installed.",),
        ),
    ],
)
def test_pips_complaints_are_taken_line_by_line(result: ChildResult, answer: tuple[str, ...]) -> None:
    assert problems_in(result) == answer


def test_without_pip_there_is_no_answer() -> None:
    answer = pip_problems(20.0, [sys.executable, "-S", "-m", "nopip"])
    assert isinstance(answer, Missing)
    assert answer.missing == "error"
    absent = problems_in(ChildResult(1, b"", b"/usr/bin/python: No module named pip"))
    assert isinstance(absent, Missing)
    assert absent.missing == "absent"


def test_both_shapes_of_torchs_nccl_version_are_read() -> None:
    assert (_nccl_text((2, 18, 1)), _nccl_text(2 << 32 | 28 << 16 | 9)) == ("2.18.1", "2.28.9")
