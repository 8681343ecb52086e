"""NC905 k8s-dns-or-mesh: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_the_headless_service_is_not_there_yet() -> None:
    text = (
        "[pod/job-worker-2/torch] [W socket.cpp:764] [c10d] The IPv6 network addresses of (job-master-0."
        "job.ns1.svc, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\n"
        "[pod/job-worker-2/torch] torch.distributed.DistNetworkError: The client socket has timed out af"
        "ter 300000ms while trying to connect to (job-master-0.job.ns1.svc, 29500).\n"
    )
    assert_cause(text, "k8s-dns-or-mesh", {"job-worker-2"})


def test_linkerd_is_in_the_way() -> None:
    text = (
        "[pod/a-0/linkerd-proxy] INFO linkerd proxy: outbound connection closed\n"
        "[pod/a-1/main] a-1:11:40 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.244"
        ".1.7<41001> failed : Connection refused\n"
    )
    assert_cause(text, "k8s-dns-or-mesh")
