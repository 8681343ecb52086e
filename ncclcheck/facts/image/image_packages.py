"""Are the Python packages of the image consistent: pip's own check, and the imports that ncclcheck needs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ncclcheck.facts.child import ChildResult, run_child, run_python_child
from ncclcheck.facts.image.image_child import BEGIN, MARK
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.image import TorchBuild

_CHILD = "ncclcheck.facts.image.image_child"
_NO_CUDA = Missing("absent", "this torch was built without CUDA")
_MOST_PROBLEMS = 200
_LONGEST = 500


class Imported(Struct, frozen=True):
    """The result of importing our dependencies, and what torch says of itself."""

    failed: Fact[dict[str, str]]
    torch: Fact[TorchBuild]


def read_imports(environ: Mapping[str, str], deadline_s: float) -> Imported:
    """Return every module that a new interpreter cannot import, with the reason; and how torch was built."""
    result = run_python_child(_CHILD, [], deadline_s=deadline_s, env=environ)
    if isinstance(result, Missing):
        return Imported(result, result)
    _, mark, text = result.stdout.decode("utf-8", "replace").rpartition(MARK)
    if result.returncode != 0 or not mark:
        return _ended(result)
    answer = json.loads(text)
    failed: dict[str, str] = answer["failed"]
    if "torch" in failed:
        return Imported(failed, Missing("error", f"torch cannot be imported: {failed['torch']}"))
    return Imported(failed, _build(answer["torch"]))


def _ended(result: ChildResult) -> Imported:
    """Return the import of one module ended the whole process; which, it said before."""
    error_text = readable(result.stderr.decode("utf-8", "replace").strip()[-_LONGEST:])
    how = f"signal {-result.returncode}" if result.returncode < 0 else f"exit code {result.returncode}"
    begun = re.findall(rf"^{BEGIN}(.*)$", result.stdout.decode("utf-8", "replace"), re.MULTILINE)
    if not begun or not begun[-1]:
        why = Missing("error", f"the child that imports modules ended with {how}: {error_text}")
        return Imported(why, why)
    failed = {begun[-1]: f"the import ends the process ({how}): {error_text}".rstrip(": ")}
    return Imported(failed, Missing("error", f"{begun[-1]} cannot be imported: {failed[begun[-1]]}"))


def _build(words: dict[str, Any]) -> Fact[TorchBuild]:
    if "error" in words:
        return Missing("error", words["error"])
    none = Missing("unsupported", "this torch does not tell it") if words["cuda"] else _NO_CUDA
    flags = words["architectures"]
    return TorchBuild(words["cuda"] or none, words["nccl"] or none, none if flags is None else tuple(flags))


def pip_problems(
    deadline_s: float, command: Sequence[str] = (sys.executable, "-m", "pip")
) -> Fact[tuple[str, ...]]:
    """Return the lines of `pip check`, which reads the metadata of all packages and no network.

    The tuple is empty where nothing is wrong.
    """
    result = run_child([*command, "check", "--disable-pip-version-check"], deadline_s=deadline_s)
    return result if isinstance(result, Missing) else problems_in(result)


def problems_in(result: ChildResult) -> Fact[tuple[str, ...]]:
    """Return what `pip check` said."""
    if result.returncode == 0:
        return ()
    lines = [line.strip() for line in result.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    if result.returncode == 1 and lines:
        return tuple(readable(line[:_LONGEST]) for line in lines[:_MOST_PROBLEMS])
    error_text = result.stderr.decode("utf-8", "replace").strip()[-_LONGEST:]
    detail = f"pip check ended with {result.returncode}: {error_text}"
    return Missing("absent" if "No module named pip" in error_text else "error", detail)
