"""What a node says of NCCL as a whole: libraries, choice, config files, plug-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ncclcheck.facts.nccl.nccl_choice import read_nccl
from ncclcheck.facts.nccl.nccl_library import Inquiry, find_library
from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclAnswer
from ncclcheck.model.hardware import NetPlugin, TunerPlugin
from tests.facts.compiled import nccl_library, needs_compiler, shared_library

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(
        isinstance(find_library({}), str), reason="this machine has an NCCL library of its own"
    ),
]


class Library:
    """Answers like a library of 2.28.9 with that NCCL_NET_PLUGIN, and notes which one was asked."""

    def __init__(self, net_plugin: str | None = None) -> None:
        self.net_plugin = net_plugin
        self.asked: list[str] = []

    def __call__(self, path: str, _environ: Mapping[str, str], _deadline_s: float) -> Inquiry:
        self.asked.append(path)
        answer = NcclAnswer(path, "2.28.9", "10.0.0.1", "eth0", 4000, 0, "Bootstrap: Using eth0")
        return Inquiry(answer, self.net_plugin)


def environment(*folders: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":".join(str(folder) for folder in folders)}


def test_the_first_is_asked_and_the_others_say_their_versions(tmp_path: Path) -> None:
    first = nccl_library(tmp_path / "a" / "libnccl.so.2", 22105)
    second = nccl_library(tmp_path / "b" / "libnccl.so.2", 22705)
    page = tmp_path / "c" / "libnccl.so.2"
    page.parent.mkdir()
    page.write_text("<html>404</html>")
    library = Library()
    environ = environment(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    choice = read_nccl(environ, 20, library)
    assert library.asked == [first]
    assert not isinstance(choice.libraries, Missing)
    told = [(one.path, one.version, one.origin, one.loaded_by_torch) for one in choice.libraries]
    assert told[:2] == [
        (first, "2.28.9", "LD_LIBRARY_PATH", False),  # what it answered
        (second, "2.27.5", "LD_LIBRARY_PATH", False),
    ]
    assert isinstance(choice.libraries[2].version, Missing)
    assert str(page) in choice.libraries[2].version.detail


def test_the_plugins_are_those_of_the_librarys_own_settings(tmp_path: Path) -> None:
    nccl_library(tmp_path / "libnccl.so.2", 22809)
    plugin = shared_library(
        tmp_path / "libnccl-net-mine.so", 'struct { const char *name; } ncclNetPlugin_v10 = { "Mine" };'
    )
    choice = read_nccl(environment(tmp_path), 20, Library("mine"))
    assert not isinstance(choice.plugins, Missing)
    assert choice.plugins[-1] == NetPlugin("libnccl-net-mine.so", plugin, (10,), "Mine")
    none = read_nccl(environment(tmp_path), 20, Library("none")).plugins
    assert not isinstance(none, Missing)
    assert [isinstance(net_plugin.path, Missing) for net_plugin in none] == [True, True]


def test_the_tuner_that_nccl_loads_unasked_says_its_name(tmp_path: Path) -> None:
    nccl_library(tmp_path / "libnccl.so.2", 22809)
    source = 'struct {{ const char *name; }} ncclTunerPlugin_v4 = {{ "{}" }};'
    path = shared_library(tmp_path / "libnccl-tuner.so", source.format("Example"))
    named = shared_library(tmp_path / "libnccl-tuner-own.so", source.format("Own"))
    found = read_nccl(environment(tmp_path), 20, Library("none")).tuners
    assert found == (TunerPlugin("libnccl-tuner.so", path, (4,), "Example"),)
    asked = read_nccl({**environment(tmp_path), "NCCL_TUNER_PLUGIN": "own"}, 20, Library("none")).tuners
    assert not isinstance(asked, Missing)
    assert asked[-1] == TunerPlugin("libnccl-tuner-own.so", named, (4,), "Own")
    assert read_nccl({**environment(tmp_path), "NCCL_TUNER_PLUGIN": "none"}, 20, Library("none")).tuners == ()


def test_a_library_that_could_not_be_asked_leaves_the_plugins_open(tmp_path: Path) -> None:
    nccl_library(tmp_path / "libnccl.so.2", 22809)

    def hangs(_path: str, _environ: Mapping[str, str], _deadline_s: float) -> Inquiry:
        return Inquiry(Missing("timeout", "no answer"))

    choice = read_nccl(environment(tmp_path), 20, hangs)
    assert isinstance(choice.plugins, Missing)
    assert choice.plugins.missing == "timeout"
    assert not isinstance(choice.libraries, Missing)
    assert choice.libraries[0].version == "2.28.9"


def test_without_any_library_nothing_is_asked() -> None:
    library = Library()
    choice = read_nccl({"PATH": os.environ["PATH"]}, 20, library)
    assert (library.asked, choice.libraries) == ([], ())
    assert isinstance(choice.asked, Missing)
    assert (choice.asked.missing, sys.prefix in choice.asked.detail) == ("absent", False)
