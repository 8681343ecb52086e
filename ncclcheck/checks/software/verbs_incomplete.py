"""NC515 verbs-incomplete."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclcheck.checks.images import judged
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import Evidence, Finding, Fix, NotKnown
from ncclcheck.model.image import Verbs
from ncclcheck.model.snapshot import Node, Snapshot

_NAME = re.compile(r"lib(?P<name>\w+)-rdmav(?P<abi>\d+)\.so$")
_FIX = Fix(
    "install libibverbs and its providers of the same release, that of the hosts' driver or newer",
    (
        "apt-get install -y libibverbs1 ibverbs-providers   # or: dnf install libibverbs",
        "ls /etc/libibverbs.d",
    ),
)


@check(
    "NC515",
    "verbs-incomplete",
    "The image has libibverbs and providers that it can load",
    needs=("image",),
    image="only",
)
def verbs_incomplete(snapshot: Snapshot) -> Iterator[Answer]:
    """The image has libibverbs and a registered provider of the same release for at least one kind of card.

    ## Why it matters
    libibverbs drives a card through a provider (libmlx5-rdmav34.so). Where either is missing, or the provider is of
    another release (rdmav25 for a libibverbs that loads rdmav34, as after copying the host's), `ibv_devices` is empty
    and NCCL uses sockets without an error, ten times slower.

    ## How to fix
    `apt-get install libibverbs1 ibverbs-providers`, or the vendor's packages, both of one release. EFA brings its own
    in the EFA installer. An image for a cluster without RDMA may ignore this check in its policy.

    ## Source
    rdma-core libibverbs/dynamic_driver.c (load_driver: VERBS_PROVIDER_DIR, then the loader's path, with the suffix
    -rdmavN.so) and libibverbs/init.c (*.driver files); NCCL src/misc/ibvsymbols.cc.
    """
    yield from judged(snapshot, "libibverbs", lambda image: image.verbs, _judge)


def _judge(node: Node, verbs: Verbs) -> Iterator[Answer]:
    if isinstance(verbs.library, Missing):
        if verbs.library.missing == "absent":
            yield _finding(
                node.host, "there is no libibverbs", "libibverbs.so.1", "none", "the loader's folders"
            )
        else:
            yield NotKnown(f"libibverbs: {verbs.library}", (node.host,))
        return
    version = "" if isinstance(verbs.version, Missing) else f" {verbs.version}"
    if isinstance(verbs.abi, Missing):
        yield NotKnown(f"which providers {verbs.library} loads: {verbs.abi}", (node.host,))
        return
    suffix = f"-rdmav{verbs.abi}.so"
    fitting = [path for path in verbs.providers if path.endswith(suffix)]
    if not fitting:
        others = ", ".join(path.rpartition("/")[2] for path in verbs.providers[:4]) or "none"
        what = f"libibverbs{version} loads providers named *{suffix}, and there is none (there: {others})"
        yield _finding(node.host, what, f"providers *{suffix}", others, verbs.library)
    elif isinstance(verbs.drivers, Missing):
        if verbs.drivers.missing != "absent":
            yield NotKnown(f"/etc/libibverbs.d: {verbs.drivers}", (node.host,))
        else:
            what = (
                f"libibverbs{version} has {len(fitting)} providers, and no /etc/libibverbs.d "
                "that registers them"
            )
            yield _finding(node.host, what, "/etc/libibverbs.d", "not there", "/etc/libibverbs.d/*.driver")
    else:
        names = {match["name"] for path in fitting if (match := _NAME.search(path))}
        if not names.intersection(verbs.drivers):
            what = f"none of the providers of libibverbs{version} ({', '.join(sorted(names))}) is registered"
            drivers = ", ".join(verbs.drivers) or "none"
            yield _finding(node.host, what, "drivers", drivers, "/etc/libibverbs.d/*.driver")


def _finding(host: str, what: str, subject: str, observed: str, source: str) -> Finding:
    return Finding(
        "warning",
        f"in the image on {host} {what}: RDMA cards are not found, and NCCL uses sockets",
        (host,),
        (
            Evidence(
                (host,), subject, observed, "libibverbs with a provider for the cards of the cluster", source
            ),
        ),
        (_FIX,),
    )
