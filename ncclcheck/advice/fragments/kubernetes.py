"""The advice as the `env` list of a container in a pod's YAML."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.advice.fragments.lines import comment, explained, per_host
from ncclcheck.model.report import Advice, Setting

_LAST_OF_TWO_DIGITS, _LAST_OF_FOUR_DIGITS = 0xFF, 0xFFFF


def render_kubernetes(advice: Advice) -> str:
    """Return a YAML mapping with the one key `env`, valid for any value. Comments say what such a list cannot."""
    is_empty = not any(setting.value is not None and not setting.hosts for setting in advice.env)
    head = "env: []" if is_empty else "env:"
    return "\n".join([head, *(f"  {line}" for line in explained(advice, _lines))]) + "\n"


def _lines(setting: Setting) -> Iterator[str]:
    if setting.hosts:
        yield comment(f"{per_host(setting)}; a pod template cannot choose by host: start the job by")
        yield comment("""eval "$(ncclcheck env --from report.json)" inside the container""")
    elif setting.value is None:
        yield comment(f"{setting.name} is to be unset: take it out of env, envFrom and the image")
    else:
        yield f"- name: {setting.name}"
        yield f"  value: {_string(setting.value)}"


def _string(value: str) -> str:
    """Return a double-quoted YAML scalar in ASCII. Kubernetes expands $(NAME) in values, so $ is written $$."""
    return '"' + "".join(_escaped(character) for character in value.replace("$", "$$")) + '"'


def _escaped(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    number = ord(character)
    if number <= _LAST_OF_TWO_DIGITS:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= _LAST_OF_FOUR_DIGITS else f"\\U{number:08x}"
