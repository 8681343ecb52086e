"""Reads the versions of what would run here, each from the part itself, without loading any of it."""

from __future__ import annotations

import ast
import platform
import re
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from ncclcheck import __version__
from ncclcheck.facts.bounded_call import missing_for
from ncclcheck.facts.section import Section
from ncclcheck.facts.software.packages import installed, metadata_lines
from ncclcheck.facts.text_files import read_line, read_text
from ncclcheck.model.fact import LIBRARY_NOT_ASKED, Fact, Missing
from ncclcheck.model.facts import Software

_NO_TORCH = Missing("absent", "torch is not installed in this Python")


def read_software(nccl: Fact[str], root: Path = Path("/")) -> Software:
    """Return the versions; `nccl` is what the asked library answered, and is passed on."""
    words = torch_words()
    return Software(
        ncclcheck=__version__,
        python=platform.python_version(),
        torch=_torch_word(words, "__version__"),
        torch_cuda=_torch_word(words, "cuda"),
        torch_nccl=_torch_nccl(words),
        nccl=nccl,
        driver=read_driver(root),
        kernel=platform.release(),
        os=read_os(root),
        machine=platform.machine(),
    )


def torch_folder(search_path: Sequence[str] | None = None) -> Path | None:
    """Return the folder `import torch` would load from, found without loading it."""
    try:
        found = PathFinder.find_spec("torch", search_path) if search_path else find_spec("torch")
    except (ImportError, ValueError):
        return None
    return Path(found.origin).parent if found and found.origin else None


def torch_words() -> Fact[dict[str, str | None]]:
    """Return the constants of torch/version.py (`__version__`, `cuda`, `hip`, `git_version`), read as text."""
    folder = torch_folder()
    if folder is None:
        return _NO_TORCH
    text = read_text(folder / "version.py")
    return text if isinstance(text, Missing) else constants(text)


def constants(source: str) -> Fact[dict[str, str | None]]:
    """Return the names to which a module's source assigns a string or None at top level."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        return missing_for(error, "torch/version.py")
    found: dict[str, str | None] = {}
    for statement in statements:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value))
            ) if value is None or isinstance(value, str):
                found[name] = value
    return found


def _torch_word(words: Fact[dict[str, str | None]], name: str) -> Fact[str]:
    if isinstance(words, Missing):
        return words
    return words.get(name) or Missing("absent", f"torch/version.py names no {name}: built without it")


def _torch_nccl(words: Fact[dict[str, str | None]]) -> Fact[str]:
    """Return the NCCL this torch was built for: the version its package pins. A torch without CUDA has none."""
    cuda = _torch_word(words, "cuda")
    folder = torch_folder()
    if isinstance(cuda, Missing) or folder is None:
        return cuda if isinstance(cuda, Missing) else _NO_TORCH
    package = installed([str(folder.parent)]).get("torch")
    pinned = pinned_nccl(metadata_lines(package)) if package else None
    return pinned or Missing("unsupported", "this torch pins no NCCL package, and asking torch would load it")


def pinned_nccl(metadata: list[str]) -> str | None:
    """Return the version in a line such as `Requires-Dist: nvidia-nccl-cu12==2.27.5; platform_system == "Linux"`."""
    for line in metadata:
        if match := re.match(r"Requires-Dist: *nvidia-nccl-cu\d+ *\(? *== *([\w.]+)", line):
            return match[1]
    return None


def read_driver(root: Path) -> Fact[str]:
    """Return the version of the loaded NVIDIA kernel module; Missing "absent" where none is loaded."""
    path = root / "proc/driver/nvidia/version"
    text = read_line(path)
    if isinstance(text, str):
        # "NVIDIA UNIX x86_64 Kernel Module  535.104.05 ..." or "... Open Kernel Module for x86_64  555.42.02 ..."
        match = re.search(r"Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", text)
        return match[1] if match else Missing("error", f"{path}: no version in {text[:200]!r}")
    module = read_line(root / "sys/module/nvidia/version")
    return text if isinstance(module, Missing) else module


def read_os(root: Path) -> Fact[str]:
    """Return PRETTY_NAME of os-release(5)."""
    text = read_text(root / "etc/os-release")
    if isinstance(text, Missing):
        text = read_text(root / "usr/lib/os-release")
    if isinstance(text, Missing):
        return text
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return Missing("absent", "os-release has no PRETTY_NAME")


SOFTWARE = Section(
    {
        "software": "torch/version.py, the distribution of each package, uname(2), /etc/os-release, "
        "/proc/driver/nvidia/version"
    },
    # The NCCL library is asked in a section of its own; `collect` puts its version here.
    read=lambda _: read_software(LIBRARY_NOT_ASKED),
)
