"""Click's complaints as one sentence each, with the nearest right word."""

from __future__ import annotations

import difflib

import click

from ncclcheck.model.errors import UsageError


class CommandGroup(click.Group):
    """A group whose commands are listed in the order they were added, and whose unknown ones are our UsageError."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. On Ctrl-C click would first write to standard error, which may have a reader that hangs."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which a user needs them."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names."""
        name = args[0]
        if (
            not ctx.resilient_parsing
            and not name.startswith("-")
            and name.replace("_", "-") not in self.commands
        ):
            known = {command: command for command, its in self.commands.items() if not its.hidden}
            within = {
                word: f"{command} {word}" for command in known for word in _words_of(self.commands[command])
            }
            near = difflib.get_close_matches(name.replace("_", "-"), known | within, 1)
            hint = (
                f"did you mean {(known | within)[near[0]]!r}?"
                if near
                else f"expected one of {', '.join(known)}"
            )
            raise UsageError(f"unknown command {name!r}: {hint}")
        return super().resolve_command(ctx, args)


def _words_of(command: click.Command) -> tuple[str, ...]:
    """Return the words that select a subcommand, as `compare` does for `report`."""
    return getattr(command, "words", ())


class PrefixCommand(click.Command):
    """A command after which `--` and another command line may stand; those words are its parameter `command`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Our own options are read up to `--`, and nothing after it."""
        own_args, rest = (
            (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, None)
        )
        if rest == [] and not ctx.resilient_parsing:
            raise UsageError("nothing follows '--': expected the command that starts the job")
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, own_args)
        if ctx.args and not ctx.resilient_parsing:  # TAB was pressed in the middle of it
            raise UsageError(
                f"unexpected {ctx.args[0]!r}: the command that starts the job stands after '--', as in "
                f"'{ctx.command_path} -- {ctx.args[0]} ...'"
            )
        ctx.params["command"] = None if rest is None else tuple(rest)
        return left

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """`[OPTIONS] [-- COMMAND...]`."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def one_sentence(error: click.ClickException) -> str:
    """Say in one sentence what is wrong with the command line, and what would be right."""
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.command_path if error.ctx else "ncclcheck"
        near = error.possibilities
        hint = f"did you mean {near[0]!r}?" if near else f"'{command} --help' lists the options"
        return f"unknown option {error.option_name!r}: {hint}"
    sentence = " ".join(error.format_message().split()).removesuffix(".")
    sentence = sentence[:1].lower() + sentence[1:]
    context = getattr(error, "ctx", None)
    return f"{sentence}; see '{context.command_path} --help'" if context else sentence
