"""NC905 k8s-dns-or-mesh."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.logs._causes import Suspect, cause, suspect
from ncclcheck.checks.logs._network import is_of_cluster, names_in, unresolved, unresolved_hosts
from ncclcheck.checks.logs._view import (
    culprits,
    exceptions,
    exits,
    failures,
    heads,
    matches,
    remarks,
    troubles,
)
from ncclcheck.checks.logs._works import shows_work
from ncclcheck.model.events import Event, Log
from ncclcheck.model.finding import Fix


@cause(
    "NC905",
    "k8s-dns-or-mesh",
    "Pods cannot resolve or reach each other",
    explains=(
        "hostname-resolution",
        "firewall-blocked-ports",
        "world-size-mismatch",
        "master-addr-wrong",
        "wrong-interface",
    ),
    fixes=(
        Fix(
            "use a headless service and wait until its DNS name resolves; switch the sidecar off for these "
            'pods (sidecar.istio.io/inject: "false") and check NetworkPolicy',
            (
                "kubectl get svc,endpoints,networkpolicy",
                "kubectl exec POD -- getent hosts NAME",
            ),
        ),
    ),
)
def k8s_dns_or_mesh(log: Log) -> Iterator[Suspect]:
    """In Kubernetes a service name does not resolve (yet), or a mesh sidecar or NetworkPolicy blocks connections.

    ## Why it matters
    A headless service's record appears only when its pod runs; a sidecar takes connections that NCCL makes on
    any port.

    ## How to fix
    Use a headless service with publishNotReadyAddresses, wait for the name before the start, and keep the mesh
    away from these pods.

    ## Source
    Kubernetes DNS for services and pods; Istio's traffic interception (PassthroughCluster).
    """
    found = [remark for remark in unresolved(log) if is_of_cluster(log, remark)]
    if found:
        given_up = [
            failure
            for failure in failures(log, "store")
            if failure.final and failure.address in names_in(found)
        ]
        yield suspect(
            f"{heads(sorted(names_in(found)))} does not resolve in these pods: the service or its DNS record "
            "does not exist (yet).",
            [*found, *given_up],
            hosts=unresolved_hosts(log, found, culprits(log, [event.place for event in given_up or found])),
        )
    mesh = remarks(log, "mesh", "k8s-policy")
    through = matches(r"accepted a connection from \S{0,12}127\.0\.0\.6\b", mesh)
    if through and not shows_work(log) and not exceptions(log) and not exits(log):
        yield suspect(
            "Connections between the pods come through the sidecar of a service mesh (127.0.0.6 is Istio's), and the "
            "job gets no further: the sidecar does not pass on the connections that the ranks make on other ports.",
            [*through, *troubles(log)[:2]],
            confidence="likely",
            hosts=(),
        )
        return
    dropped = matches(
        r"BlackHoleCluster|upstream connect error|upstream_reset|\bU[FH],|NetworkPolicy.{0,60}den|"
        r"Envoy proxy is NOT ready|failed to proxy|terminated with: signal",
        mesh,
    )
    broken: list[Event] = [failure for failure in failures(log) if failure.layer != "store" or dropped]
    broken = broken or list(remarks(log, "closed-by-peer"))
    broken = broken or list(exceptions(log, "after-effect") if dropped else ())
    if not broken and not shows_work(log):
        broken = list(dropped)  # the sidecar's own word, and the job got no further
    if mesh and broken and (dropped or troubles(log)):
        yield suspect(
            "A sidecar of a service mesh (or a NetworkPolicy) between the pods breaks connections "
            "that NCCL opens.",
            [*mesh, *broken],
            confidence="likely",
            at=broken[0].place,
        )
