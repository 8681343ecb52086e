"""Click's complaints as one sentence each, with the nearest right word."""

from __future__ import annotations

import difflib

import click

from ncclcheck.model.errors import UsageError


class CommandGroup(click.Group):
    """A group whose commands are listed in the order they were added, and whose unknown ones are our UsageError."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of a user's way through them."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        name = args[0]
        if not name.startswith("-") and name.replace("_", "-") not in self.commands:
            near = difflib.get_close_matches(name.replace("_", "-"), self.commands, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(self.commands)}"
            raise UsageError(f"unknown command {name!r}: {hint}")
        return super().resolve_command(ctx, args)


def one_sentence(error: click.ClickException) -> str:
    """What is wrong with the command line, and what would be right."""
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.command_path if error.ctx else "ncclcheck"
        near = error.possibilities
        hint = f"did you mean {near[0]!r}?" if near else f"'{command} --help' lists the options"
        return f"unknown option {error.option_name!r}: {hint}"
    sentence = " ".join(error.format_message().split()).removesuffix(".")
    sentence = sentence[:1].lower() + sentence[1:]
    context = getattr(error, "ctx", None)
    return f"{sentence}; see '{context.command_path} --help'" if context else sentence
