"""The network plug-ins that NCCL could try: the files for a value of NCCL_NET_PLUGIN, and the results."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.facts.software.loading import Plugin
from ncclcheck.facts.text_files import readable
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NetPlugin, TunerPlugin

VARIABLE = "NCCL_NET_PLUGIN"
DEFAULT = "libnccl-net.so"
TUNER_VARIABLE = "NCCL_TUNER_PLUGIN"
DEFAULT_TUNER = "libnccl-tuner.so"
_MOST = 14  # NCCL_NET_MAX_PLUGINS without the two built-in networks


def plugin_files(value: str | None) -> tuple[tuple[str], ...]:
    """Return every file that NCCL of any version could try under NCCL_NET_PLUGIN=`value` (None: unset), each a group.

    Which of them a version does try, and when it stops, are rules of `nccl.plugins`. A value is a file, the X of
    libnccl-net-X.so, or a list of these. NCCL src/net.cc, since 2.26 src/plugin/plugin_open.cc and net.cc.
    """
    if not value:
        return ((DEFAULT,),)
    parts = [name for name in value.split(",") if name][:_MOST]
    names = dict.fromkeys([value, *parts])
    return tuple((file,) for file in dict.fromkeys(file for name in names for file in _files(name)))


def _files(name: str) -> tuple[str, str]:
    return name, f"libnccl-net-{name}.so"


def tuner_files(value: str | None) -> tuple[tuple[str, ...], ...]:
    """Return the tuner plug-in that NCCL tries under NCCL_TUNER_PLUGIN=`value`, as the files it tries for it.

    Unset: libnccl-tuner.so, which is loaded unasked. NCCL src/misc/tuner.cc of 2.22 and 2.24, src/plugin/tuner.cc of
    2.28 to 2.30.
    """
    if not value:
        return ((DEFAULT_TUNER,),)
    return () if value.lower() == "none" else ((value, f"libnccl-tuner-{value}.so"),)


def as_tuners(answers: Sequence[Fact[tuple[Plugin, ...]]]) -> Fact[tuple[TunerPlugin, ...]]:
    """Return the result for the files; Missing where the process that loads them died."""
    found: list[TunerPlugin] = []
    for answer in answers:
        if isinstance(answer, Missing):
            return answer
        found += [
            TunerPlugin(
                readable(plugin.file), _readable(plugin.path), plugin.tuner_apis, _readable(plugin.tuner)
            )
            for plugin in answer
        ]
    return tuple(found)


def as_plugins(
    groups: Sequence[Sequence[str]], answers: Sequence[Fact[tuple[Plugin, ...]]]
) -> tuple[NetPlugin, ...]:
    """Return the files in the order of the groups, each with its result."""
    found = []
    for files, answer in zip(groups, answers, strict=True):
        if isinstance(answer, Missing):  # the child died before it named the file
            detail = f"{', '.join(files)}: {answer.detail}"
            found.append(NetPlugin(readable(files[-1]), Missing(answer.missing, detail)))
        else:
            found += [
                NetPlugin(
                    readable(plugin.file), _readable(plugin.path), plugin.apis, _readable(plugin.network)
                )
                for plugin in answer
            ]
    return tuple(found)


def _readable(text: Fact[str]) -> Fact[str]:
    return text if isinstance(text, Missing) else readable(text)
