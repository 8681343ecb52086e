"""Whether GPUs and links may run NCCL's LL128 protocol: its manual says that elsewhere it can corrupt data.

NCCL enables it by itself only where the look of `src/graph/tuning.cc` (2.30.7, topoGetAlgoInfo) allows it, and
NCCL_PROTO=LL128 goes past that look. What is asked here is the same, as far as the facts tell; not known is no.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NodeFacts
from ncclcheck.nccl.gpus.nvlinks import joined
from ncclcheck.nccl.topology import BELOW_SWITCHES
from ncclcheck.nccl.transport import distances

_CAPABILITY = re.compile(r"(\d{1,3})\.(\d{1,3})")
_LEAST, _MIXED_LEAST = (7, 0), (9, 0)  # Volta; from Hopper on GPUs may differ


def ll128_refusal(nodes: Sequence[tuple[str, NodeFacts]], protocols: str = "LL128") -> str:
    """Return why LL128, which this NCCL_PROTO forces, is not tried on these nodes; empty where it is safe."""
    found = [why for host, facts in nodes for why in _of_node(host, facts, is_alone=len(nodes) == 1)]
    known = {capability for _, facts in nodes for capability in _capabilities(facts)}
    if not found and len(known) > 1 and min(known) < _MIXED_LEAST:
        found.append("the GPUs are of several kinds")
    if not found:
        return ""
    more = ", for ^ enables each protocol that it does not name" if "^" in protocols else ""
    return (
        f"NCCL_PROTO={protocols} is not tried{more}: on platforms that do not support LL128, it can corrupt data "
        f"(NCCL's manual), and here {found[0]}"
    )


def _of_node(host: str, facts: NodeFacts, *, is_alone: bool) -> Iterator[str]:
    gpus = facts.gpus
    if isinstance(gpus, Missing) or not gpus:
        yield f"the GPUs of {host} are not known"
        return
    capabilities = _capabilities(facts)
    if len(capabilities) < len(gpus):
        yield f"the compute capability of a GPU of {host} is not known"
    elif min(capabilities) < _LEAST:
        yield f"{host} has a GPU older than Volta"
    for gpu in gpus if len(gpus) > 1 else ():
        links = gpu.state.nvlinks
        if isinstance(links, Missing) or not any(link.active is True for link in links):
            yield f"it is not known that GPU {gpu.index} of {host} is connected by NVLink"
    if len(gpus) > 1 and joined(gpus, facts) == "some":
        yield f"NVLinks do not join all GPUs of {host}"
    if not is_alone:
        yield from _far_from_cards(host, facts)


def _far_from_cards(host: str, facts: NodeFacts) -> Iterator[str]:
    """Yield a GPU that no RDMA device is known to share a PCIe switch with."""
    if isinstance(facts.pci, Missing) or isinstance(facts.rdma, Missing):
        yield f"the way from the GPUs of {host} to the network is not known"
        return
    environment = {} if isinstance(facts.environment, Missing) else facts.environment
    pairs = distances(facts, environment)
    if isinstance(pairs, Missing):
        yield f"how far the GPUs of {host} are from the network is not known: {pairs.detail}"
        return
    near = {pair.gpu for pair in pairs if pair.distance in BELOW_SWITCHES}
    gpus = () if isinstance(facts.gpus, Missing) else facts.gpus
    far = [gpu.index for gpu in gpus if isinstance(gpu.pci, Missing) or gpu.pci.lower() not in near]
    if far:
        yield f"GPU {far[0]} of {host} shares no PCIe switch with an RDMA device"


def _capabilities(facts: NodeFacts) -> list[tuple[int, int]]:
    gpus = () if isinstance(facts.gpus, Missing) else facts.gpus
    texts = (gpu.state.compute_capability for gpu in gpus)
    found = (_CAPABILITY.fullmatch(text) for text in texts if not isinstance(text, Missing))
    return [(int(match[1]), int(match[2])) for match in found if match]
