"""The network plug-ins that NCCL would try: which files, by the rules of its version, and what came of loading them."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.facts.files import readable
from ncclcheck.facts.loading import Plugin
from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NetPlugin

VARIABLE = "NCCL_NET_PLUGIN"
DEFAULT = "libnccl-net.so"
_VALUE_IS_A_FILE_SINCE = (2, 21)
_STATIC_SINCE = (2, 22)
_FILE_NAMES_STAND_ALONE_SINCE = (2, 26)
_LIST_SINCE = (2, 27)
_NONE_SINCE = (2, 28)
_MOST = 14  # NCCL_NET_MAX_PLUGINS without the two built-in networks
_LONGEST = 254  # MAX_STR_LEN without its end


def plugin_files(value: str | None, version: str) -> tuple[tuple[str, ...], ...]:
    """The files NCCL of `version` tries under NCCL_NET_PLUGIN=`value` (None: unset), one group per plug-in.

    Of a group the first that loads is taken. Up to 2.20 (src/net.cc, ncclNetPluginInit) the value is the X of
    libnccl-net-X.so. From 2.21 it is tried as a file first; from 2.26 a path or a name lib*.so is not tried otherwise
    (src/plugin/plugin_open.cc). From 2.27 it is a list of at most 14, and an empty one means none; `none` does so from
    2.28 (src/plugin/net.cc). STATIC_PLUGIN and its beginnings are no file from 2.22: the plug-in is in the program.
    """
    number = tuple(int(part) for part in version.split(".")[:2])
    if value is None or (not value and number < _LIST_SINCE):
        return ((DEFAULT,),)
    if number >= _NONE_SINCE and value.lower() == "none":
        return ()
    names = [value]
    if number >= _LIST_SINCE:
        names = [name for name in value.split(",") if name and len(name) <= _LONGEST][:_MOST]
    groups = (_files(name, number) for name in names)
    return tuple(group for group in groups if group)


def _files(name: str, number: tuple[int, ...]) -> tuple[str, ...]:
    prefixed = f"libnccl-net-{name}.so"
    if number < _VALUE_IS_A_FILE_SINCE:
        return (prefixed,)
    if number >= _STATIC_SINCE and "static_plugin".startswith(name.lower()):
        return ()
    is_file_name = "/" in name or (name.startswith("lib") and name.endswith(".so"))
    alone = number >= _FILE_NAMES_STAND_ALONE_SINCE and is_file_name
    return (name,) if alone else (name, prefixed)


def as_plugins(
    groups: Sequence[Sequence[str]], answers: Sequence[Fact[tuple[Plugin, ...]]]
) -> tuple[NetPlugin, ...]:
    """The files in NCCL's order, each with what came of it, without those after the first of a group that loads."""
    found = []
    for files, answer in zip(groups, answers, strict=True):
        if isinstance(answer, Missing):  # nobody lived to say which of the files it was
            detail = f"{', '.join(files)}: {answer.detail}"
            found.append(NetPlugin(readable(files[-1]), Missing(answer.missing, detail)))
        else:
            found += [
                NetPlugin(readable(one.file), _readable(one.path), one.apis, _readable(one.network))
                for one in answer
            ]
    return tuple(found)


def _readable(text: Fact[str]) -> Fact[str]:
    return text if isinstance(text, Missing) else readable(text)
