"""NC907 wrong-interface: lines of several versions, launchers and wordings mean it."""

from __future__ import annotations

from tests.checks.logs.explaining import assert_cause


def test_virbr_on_one_host() -> None:
    text = (
        "0: h1:10:10 [0] NCCL INFO Bootstrap: Using ens3:10.0.0.1<0>\n"
        "1: h2:11:11 [0] NCCL INFO Bootstrap: Using virbr0:192.168.122.1<0>\n"
        "0: h1:10:12 [0] misc/socket.cc:610 NCCL WARN socketPollConnect: connect to 192.168.122.1<40000>"
        " returned Connection refused, exceeded error retry count after 35 attempts\n"
    )
    assert_cause(text, "wrong-interface", {"h2"})


def test_gloo_meets_itself() -> None:
    text = (
        "[rank0]: [gloo/transport/tcp/debug_logger.cc:9] ERROR failed to connect, willRetry=0, retry=3, "
        "retryLimit=3, rank=0, size=2, local=[172.18.0.1]:4411, remote=[172.18.0.1]:5511$0, error=SO_ERR"
        "OR: Connection refused\n"
        "[rank0]: RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:152] timed "
        "out connecting: SO_ERROR: Connection refused, remote=[172.18.0.1]:5511$0\n"
    )
    assert_cause(text, "wrong-interface")


def test_a_tunnel_with_a_link_local_address() -> None:
    text = (
        "w-1:97:221 [0] NCCL INFO Bootstrap : Using [0]ip6tnl0:fe80::e866:19ff:fe1e:a688%ip6tnl0<0> [1]e"
        "th0:10.1.1.1<0>\n"
        "w-2:84:206 [0] NCCL INFO Bootstrap : Using [0]ip6tnl0:fe80::e866:19ff:fe1e:a699%ip6tnl0<0> [1]e"
        "th0:10.1.1.2<0>\n"
        "w-2:84:206 [0] include/socket.h:403 NCCL WARN Connect to fe80::e866:19ff:fe1e:a688%ip6tnl0<3300"
        "0> failed : Connection timed out\n"
    )
    assert_cause(text, "wrong-interface")
