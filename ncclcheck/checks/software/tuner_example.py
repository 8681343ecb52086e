"""NC518 tuner-example."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.hosts import named, not_reported, verb
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.hardware import TunerPlugin
from ncclcheck.model.snapshot import Snapshot

_NAMES = ("Example", "Basic")  # PLUGIN_NAME of NVIDIA's samples; Basic since 2.28
_CAPPED_SINCE = 3  # ncclTunerPlugin_v3, NCCL 2.22; the samples of v1 and v2 leave the channels alone


@check(
    "NC518",
    "tuner-example",
    "NCCL does not load NVIDIA's example tuner plug-in",
    needs=("nccl",),
    image=True,
)
def tuner_example(snapshot: Snapshot) -> Iterator[Answer]:
    """No node loads NVIDIA's example (or basic) tuner plug-in, which caps every collective at one channel.

    The plug-in is recognised by the name it gives itself. NCCL loads libnccl-tuner.so unasked if the loader finds it.

    ## Why it matters
    The example sets `*nChannels = 1` before it looks for a line of its table that matches, and NCCL takes every value
    but 0 as an order. All collectives without an explicit number of channels in the table use one channel, at a
    fraction of the bandwidth, and nothing is printed. The README of the example says that -1 keeps NCCL's choice: it
    does not.

    ## How to fix
    Set NCCL_TUNER_PLUGIN=none (NCCL 2.28 and later), or take the plug-in out of the library path. In a plug-in made
    from the example, set `*nChannels = 0`.

    ## Source
    NCCL 2.22.3 to 2.30.7: ext-tuner/example/plugin.c, from 2.28 also ext-tuner/basic/plugin.c (2.30: plugins/tuner),
    pluginGetCollInfo; src/enqueue.cc, `nMaxChannels == 0 ? info->nMaxChannels : nMaxChannels`. AMD's copy was fixed
    in ROCm/rccl pull request 1985.
    """
    found: dict[str, list[str]] = {}
    for node, choice in snapshot.known("nccl"):
        if isinstance(choice.tuners, Missing):
            yield NotKnown(f"the tuner plug-in that NCCL loads is not known: {choice.tuners}", (node.host,))
            continue
        for tuner in filter(_is_example, choice.tuners):
            found.setdefault(f"{tuner.path} ({tuner.name})", []).append(node.host)
    for text, hosts in found.items():
        yield _finding(text, tuple(hosts))
    yield from not_reported(snapshot)


def _is_example(tuner: TunerPlugin) -> bool:
    return tuner.name in _NAMES and max(tuner.apis, default=0) >= _CAPPED_SINCE


def _finding(text: str, hosts: tuple[str, ...]) -> Finding:
    return Finding(
        "warning",
        f"{named(hosts)} {verb(hosts, 'loads', 'load')} NVIDIA's example tuner plug-in, {text}: unless its copy was "
        "changed it caps every collective at one channel",
        hosts,
        (
            Evidence(
                hosts,
                "tuner plug-in",
                text,
                "none, or one that leaves nChannels at 0",
                "dlopen; NCCL_TUNER_PLUGIN",
            ),
        ),
        (
            Fix(
                "do not load it (NCCL_TUNER_PLUGIN=none needs NCCL 2.28), or set *nChannels = 0 in its source",
                (
                    "export NCCL_TUNER_PLUGIN=none",
                    "find $(printenv LD_LIBRARY_PATH | tr : ' ') -name 'libnccl-tuner*'",
                ),
            ),
        ),
    )
