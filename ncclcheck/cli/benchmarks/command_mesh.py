"""The parallel groups of the command behind `--`: of its arguments, and of the file that torchtitan reads."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ncclcheck.cli.files import read_text
from ncclcheck.launch.line.parallel_sizes import TITAN_SECTIONS, parallel_sizes, titan_file
from ncclcheck.model.benchmarks.mesh import Mesh
from ncclcheck.model.errors import UsageError
from ncclcheck.model.fact import Missing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = "--job.config_file"


def command_mesh(words: Sequence[str]) -> Mesh | Missing | None:
    """Return the mesh; None where nothing names parallel sizes, Missing where what names them cannot be read."""
    file = titan_file(words)
    if file is None:
        return parallel_sizes(words)
    try:
        table = tomllib.loads(read_text(file, _FILE))
    except UsageError as error:
        return Missing("error", f"the parallel sizes: {error}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Missing("error", f"the parallel sizes: {_FILE} {file}: {error}")
    return parallel_sizes(words, _settings(table))


def _settings(table: dict[str, Any]) -> dict[str, str]:
    """Return the settings of the sections with parallel sizes as arguments would name them."""
    sections = ((name, table.get(name)) for name in TITAN_SECTIONS)
    return {
        f"--{name}.{key}": str(value)
        for name, section in sections
        if isinstance(section, dict)
        for key, value in section.items()
    }
