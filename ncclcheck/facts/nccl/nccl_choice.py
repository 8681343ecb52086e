"""Reads what NCCL would use here: the libraries there are, the choice of torch's, its config files, its plug-ins."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ncclcheck import timeouts
from ncclcheck.facts.nccl.nccl_config import read_config_files, settings_in
from ncclcheck.facts.nccl.nccl_library import Inquiry, first_library, inquire
from ncclcheck.facts.nccl.nccl_plugins import TUNER_VARIABLE, as_plugins, as_tuners, plugin_files, tuner_files
from ncclcheck.facts.nccl.nccl_search import Found, rpath_folders, search_libraries
from ncclcheck.facts.nccl.nccl_words import version_text
from ncclcheck.facts.section import Section
from ncclcheck.facts.software.loading import LibraryVersion, load
from ncclcheck.facts.text_files import readable
from ncclcheck.facts.tree import Folder
from ncclcheck.model.fact import NOT_IN_A_TREE, Fact, Missing
from ncclcheck.model.facts import NcclChoice, NcclConfigFile
from ncclcheck.model.hardware import NcclLibrary

# How a library is asked: its path, the environment, and the time for it.
Inquire: TypeAlias = Callable[[str, Mapping[str, str], float], Inquiry]
_CONFIG_FILE = "etc/nccl.conf"


def read_nccl(environ: Mapping[str, str], deadline_s: float, ask_with: Inquire = inquire) -> NcclChoice:
    """Return what the library that torch would load chooses under `environ`, and what else it would load and read."""
    end = time.monotonic() + deadline_s
    found = search_libraries(environ)
    library = first_library(found)
    asking_s = max(deadline_s - timeouts.NCCL_LOADING_KEPT_S, deadline_s / 2)
    inquiry = Inquiry(library) if isinstance(library, Missing) else ask_with(library, environ, asking_s)
    unasked = [
        candidate.path
        for candidate in found
        if isinstance(inquiry.answer, Missing) or candidate.path != library
    ]
    groups = _plugin_groups(inquiry)
    left_s = min(timeouts.NCCL_LOADING_S, max(end - time.monotonic(), 0.1))
    config_files = read_config_files(environ)
    networks = () if isinstance(groups, Missing) else groups
    tuners = tuner_files(_setting(TUNER_VARIABLE, environ, config_files)) if found else ()
    loaded = load(unasked, [*networks, *tuners], rpath_folders(), environ, left_s)
    versions = dict(zip(unasked, loaded.versions, strict=True))
    return NcclChoice(
        asked=inquiry.answer,
        config_files=config_files,
        home_set="HOME" in environ,
        libraries=tuple(_library(candidate, versions.get(candidate.path), inquiry) for candidate in found),
        plugins=groups
        if isinstance(groups, Missing)
        else as_plugins(groups, loaded.plugins[: len(networks)]),
        tuners=as_tuners(loaded.plugins[len(networks) :]),
    )


def _setting(name: str, environ: Mapping[str, str], files: Sequence[NcclConfigFile]) -> str | None:
    """Return what NCCL reads of a setting: the environment first, then its config files."""
    settings = [file.settings for file in files if not isinstance(file.settings, Missing)]
    return next((known[name] for known in (environ, *settings) if name in known), None)


def _library(found: Found, version: Fact[LibraryVersion] | None, inquiry: Inquiry) -> NcclLibrary:
    """Return a library as a fact. `version` None: it is the library that was asked, and answered."""
    known: Fact[str]
    if version is None:
        known = inquiry.answer if isinstance(inquiry.answer, Missing) else inquiry.answer.version
    elif isinstance(version, Missing):
        known = Missing(version.missing, f"{found.path}: {version.detail}")
    else:
        known = version_text(version.number)
    return NcclLibrary(readable(found.path), known, found.origin, found.loaded_by_torch)


def _plugin_groups(inquiry: Inquiry) -> Fact[Sequence[Sequence[str]]]:
    answer = inquiry.answer
    if isinstance(answer, Missing):
        return Missing(answer.missing, f"which plug-ins NCCL takes is not known: {answer.detail}")
    return plugin_files(inquiry.net_plugin)


def _read_tree(here: Folder) -> Fact[NcclChoice]:
    """Return the settings of the machine's /etc/nccl.conf; a tree without /etc says nothing of NCCL."""
    if isinstance(here.folder("etc"), Missing):
        return NOT_IN_A_TREE
    text = here.text(_CONFIG_FILE)
    settings = text if isinstance(text, Missing) else settings_in(text)
    return NcclChoice(NOT_IN_A_TREE, (NcclConfigFile(f"/{_CONFIG_FILE}", settings),), home_set=False)


NCCL = Section(
    {
        "nccl": "ncclGetUniqueId and ncclGetVersion of the library itself, in a child process; /etc/nccl.conf, "
        "~/.nccl.conf; the loader's search path"
    },
    read=lambda request: read_nccl(request.environment, request.parts_s, request.ask_with or inquire),
    read_tree=_read_tree,
)
