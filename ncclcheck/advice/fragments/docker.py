"""The advice as a file for `docker run --env-file`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ncclcheck.advice.fragments.lines import comment, explained, per_host
from ncclcheck.model.report import Advice, Setting

_USE = "docker run --env-file <(ncclcheck env --format docker) ..., or podman"


def render_docker(advice: Advice) -> str:
    """NAME=VALUE lines, taken as they are: docker reads no quotes there (docker/cli opts/file.go).

    A value with a line break does not fit into such a file, and no line can take a variable away or choose by host.
    """
    lines = [comment(_USE), *explained(advice, _lines)]
    passed = [setting for setting in advice.env if setting.value is not None and not setting.hosts]
    if passed:
        arguments = " ".join(f"--env {shlex.quote(f'{setting.name}={setting.value}')}" for setting in passed)
        lines.append(comment(f"the same as arguments: {arguments}"))
    return "\n".join(lines) + "\n"


def _lines(setting: Setting) -> Iterator[str]:
    if setting.hosts:
        yield comment(
            f"{per_host(setting)}; one file cannot choose by host: pass --env there, or start the job by"
        )
        yield comment("""eval "$(ncclcheck env --from report.json)" inside the container""")
    elif setting.value is None:
        yield comment(f"{setting.name} is to be unset: do not pass it, and take it out of the image's ENV")
    elif any(character in setting.value for character in "\n\r"):
        yield comment(f"{setting.name}: its value has a line break, which only --env can pass")
    else:
        yield f"{setting.name}={setting.value}"
