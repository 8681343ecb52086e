"""Values on the command line: numbers and lists, refused with one sentence that names the value and what is right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from ncclcheck import timeouts
from ncclcheck.model.errors import UsageError

if TYPE_CHECKING:
    _ParamType: TypeAlias = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # only newer clicks can be subscripted at run time

_WHOLE = re.compile(r"-?\d{1,12}", re.ASCII)
_DECIMAL = re.compile(r"-?(\d{1,9}(\.\d{0,9})?|\.\d{1,9})", re.ASCII)


class WholeNumber(_ParamType):
    """A whole number from `least` to `most`."""

    name = "N"

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises UsageError where it is not one, or impossible."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if _WHOLE.fullmatch(text) and self.least <= int(text) <= self.most:
            return int(text)
        raise UsageError(
            f"{option_name(param, ctx)} {text!r}: expected a whole number from {self.least} to {self.most}"
        )


class Percentage(WholeNumber):
    """A whole number of per cent, with or without the sign."""

    name = "PCT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises UsageError where it is not one, or impossible."""
        return super().convert(value if isinstance(value, int) else str(value).removesuffix("%"), param, ctx)


class Seconds(_ParamType):
    """A time above zero, in seconds."""

    name = "SECONDS"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds. Raises UsageError where they are not a number, not above 0, or more than a week."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        if _DECIMAL.fullmatch(text) and 0 < float(text) <= timeouts.LONGEST_OPTION_S:
            return float(text)
        raise UsageError(
            f"{option_name(param, ctx)} {text!r}: expected seconds, a number above 0 "
            f"and at most {timeouts.LONGEST_OPTION_S:.0f}"
        )


class FileName(_ParamType):
    """The name of a file or folder, which is at least not empty: `--from "$FORGOTTEN"` is a mistake, not no option."""

    name = "FILE"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Let the shell complete file names itself."""
        del ctx, param
        return [CompletionItem(incomplete, type="file")]

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Raises UsageError where it is empty."""
        text = str(value)
        if text:
            return text
        raise UsageError(f"{option_name(param, ctx)} '': expected the name of a file")


class NameList(_ParamType):
    """One or several names, separated by commas."""

    name = "NAMES"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names. Raises UsageError where one is empty."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in str(value).split(","))
        if all(names):
            return names
        raise UsageError(
            f"{option_name(param, ctx)} {str(value)!r}: expected names separated by single commas"
        )


def option_name(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """How the user knows the parameter: `--node-rank`."""
    if param is None:
        return "value"
    return (
        param.opts[0]
        if param.param_type_name == "option"
        else param.make_metavar(ctx or click.Context(click.Command("")))
    )
