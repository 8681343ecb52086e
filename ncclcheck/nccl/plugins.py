"""Which external network plug-ins NCCL tries before its own networks, and which of them it can load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ncclcheck.model.fact import Fact, Missing
from ncclcheck.model.hardware import NetPlugin
from ncclcheck.nccl import versions

DEFAULT_FILE = "libnccl-net.so"
_MOST_PLUGINS = 14  # NCCL_NET_MAX_PLUGINS less the two internal ones
_MOST_CHARACTERS = 254


class Attempt(Struct, frozen=True):
    """One plug-in NCCL tries. `network` is its name (the file's where that is not known).

    `loads`: None where the file was not looked for. `is_named` is False for the one that NCCL tries unasked; that
    it is not there is no news, so the reason is empty then.
    """

    network: str
    loads: bool | None
    reason: str
    is_named: bool
    is_network_known: bool = False


def wanted_files(environment: Mapping[str, str], version: str) -> tuple[tuple[str, ...], ...]:
    """Return the plug-ins NCCL tries in its order, each as the file names that it tries for it.

    Unset: libnccl-net.so. NCCL_NET_PLUGIN=x: libnccl-net-x.so up to 2.20; x itself and then that from 2.21; a comma
    list of at most 14 from 2.27, and an empty one means no plug-in; `none` does so from 2.28 (before, a file of that
    name is not found). STATIC_PLUGIN and its beginnings are no file from 2.22: the program itself is searched. NCCL
    src/net.cc, since 2.26 src/plugin/net.cc and plugin_open.cc; read at every public tag.
    """
    value = environment.get("NCCL_NET_PLUGIN")
    rules = versions.parse(version)
    if value is None or (not value and rules < versions.PLUGIN_LIST_SINCE):
        return ((DEFAULT_FILE,),)
    if value.lower() == "none" and rules >= versions.PLUGIN_NONE_SINCE:
        return ()
    names = [value]
    if rules >= versions.PLUGIN_LIST_SINCE:
        names = [name for name in value.split(",") if name and len(name) <= _MOST_CHARACTERS]
    groups = (_files(name, rules) for name in names[:_MOST_PLUGINS])
    return tuple(group for group in groups if group)


def _files(name: str, version: versions.Version) -> tuple[str, ...]:
    """Return the names openPluginLib tries for one plug-in; none for the program itself.

    From 2.27 a name lib*.so is tried as it is only, and from 2.27.5 a path too; 2.27.3 makes libnccl-net-X.so of a path
    as of any other name, and tries nothing else for it.
    """
    composed = f"libnccl-net-{name}.so"
    is_library = name.startswith("lib") and name.endswith(".so")
    if version < versions.PLUGIN_VALUE_IS_A_FILE_SINCE:
        return (composed,)
    if versions.PLUGIN_LIST_SINCE <= version < versions.PLUGIN_PATH_AGAIN_SINCE:
        if not (is_library and len(name) >= len("libX.so")):
            return (composed,)
    elif version >= versions.PLUGIN_STATIC_SINCE and "static_plugin".startswith(name.lower()):
        return ()
    is_file = version >= versions.PLUGIN_LIST_SINCE and ("/" in name or is_library)
    return (name,) if is_file else (name, composed)


def attempts(
    plugins: Fact[tuple[NetPlugin, ...]], environment: Mapping[str, str], version: str
) -> Iterator[Attempt]:
    """Yield the result for each plug-in that NCCL tries."""
    is_named = "NCCL_NET_PLUGIN" in environment
    for files in wanted_files(environment, version):
        yield _attempt(files, plugins, version, is_named)


def _attempt(
    files: Sequence[str], plugins: Fact[tuple[NetPlugin, ...]], version: str, is_named: bool
) -> Attempt:
    shown = " or ".join(files)
    if isinstance(plugins, Missing):
        return Attempt(files[-1], None, f"whether there is a plug-in {shown} was not read", is_named)
    by_file = {plugin.file: plugin for plugin in plugins}
    known = [by_file[file] for file in files if file in by_file]
    found = next((net_plugin for net_plugin in known if not isinstance(net_plugin.path, Missing)), None)
    if found is not None:
        return _loaded(found, version, is_named)
    broken = [
        net_plugin
        for net_plugin in known
        if isinstance(net_plugin.path, Missing) and net_plugin.path.missing != "absent"
    ]
    if broken:
        return Attempt(files[-1], False, f"{broken[0].file} cannot be loaded ({broken[0].path})", is_named)
    if known or not is_named:
        return Attempt(files[-1], False, f"there is no plug-in {shown}" if is_named else "", is_named)
    return Attempt(files[-1], None, f"whether there is a plug-in {shown} was not looked for", is_named)


def _loaded(plugin: NetPlugin, version: str, is_named: bool) -> Attempt:
    accepted = versions.at(versions.PLUGIN_APIS, versions.parse(version))
    usable = [api for api in plugin.apis if api in accepted]
    if not usable:
        speaks = ", ".join(f"v{api}" for api in plugin.apis) or "none"
        accepted_api = f"v{accepted.start} to v{accepted.stop - 1}"
        reason = (
            f"NCCL {version} loads no {plugin.file}: it has plug-in API {speaks}, needed is {accepted_api}"
        )
        return Attempt(plugin.file, False, reason, is_named)
    name = plugin.file if isinstance(plugin.network, Missing) else plugin.network
    reason = f"the plug-in {plugin.path} (API v{max(usable)}) comes before NCCL's own networks"
    return Attempt(name, True, reason, is_named, is_network_known=not isinstance(plugin.network, Missing))
