"""Which of two networks is clearly faster: measured first, link speed second, and never by a guess."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.advice.networks import Network, Rank
from ncclcheck.advice.speed import best_first, figure, is_as_good, is_clearly_faster, why_slow
from ncclcheck.measure.links.network_rates import Throughput
from ncclcheck.measure.links.slow_parts import SlowestPart


def network(name: str, gbit_s: float | None = None, link_mbps: int = 0, *, cpu: bool = False) -> Network:
    """A network measured at gbit_s, with a spread of 5 % to either side; None: not measured."""
    places = {"node01": (name, "10.0.0.1"), "node02": (name, "10.0.0.2")}
    rank = Rank(False, -link_mbps)
    if gbit_s is None:
        return Network(places, rank, None)
    measured = Throughput(gbit_s, gbit_s * 0.95, gbit_s * 1.05, 12, cpu)
    return Network(places, rank, None, measured)


def test_measured_1_3_times_as_fast_and_apart_is_clearly_faster() -> None:
    assert is_clearly_faster(network("b", 13.1), network("a", 10.0))
    assert not is_clearly_faster(network("b", 12.9), network("a", 10.0))
    assert not is_clearly_faster(network("a", 10.0), network("b", 13.1))
    overlapping = Network({}, Rank(False, 0), None, Throughput(20.0, 9.0, 30.0, 12, False))
    assert not is_clearly_faster(overlapping, network("a", 10.0))


def test_of_two_that_share_a_place_the_slowest_places_are_compared() -> None:
    def mixed(first: str, second: str) -> Network:
        gbit_s = {"fast": 10.0, "slow": 2.0}
        to = {
            host: Throughput(gbit_s[name], gbit_s[name] * 0.95, gbit_s[name] * 1.05, 2, False)
            for host, name in (("node01", first), ("node02", second))
        }
        middle = (gbit_s[first] + gbit_s[second]) / 2
        ends = sorted((gbit_s[first], gbit_s[second]))
        places = {"node01": (first, f"{first}.1"), "node02": (second, f"{second}.2")}
        return Network(
            places, Rank(False, 0), None, Throughput(middle, ends[0] * 0.95, ends[1] * 1.05, 4, False), to
        )

    assert is_clearly_faster(mixed("fast", "fast"), mixed("fast", "slow"))
    assert not is_clearly_faster(mixed("fast", "slow"), mixed("slow", "slow"))
    assert not is_clearly_faster(mixed("fast", "slow"), mixed("fast", "fast"))
    assert is_clearly_faster(mixed("fast", "fast"), mixed("slow", "slow"))


def test_what_was_not_measured_is_never_clearly_faster() -> None:
    assert not is_clearly_faster(network("b", None, 400_000), network("a", None, 1_000))
    assert not is_clearly_faster(network("b", 40.0), network("a", None, 1_000))
    assert not is_clearly_faster(network("b", None, 400_000), network("a", 1.0))


def test_measurement_wins_over_links_unless_the_cpu_was_the_limit() -> None:
    slow_link, fast_link = network("b", 30.0, 10_000), network("a", 10.0, 100_000)
    assert is_clearly_faster(slow_link, fast_link)
    assert not is_clearly_faster(slow_link, network("a", 10.0, 100_000, cpu=True))
    assert not is_clearly_faster(slow_link, network("a", 10.0, 0, cpu=True))
    assert is_clearly_faster(slow_link, network("a", 10.0, 1_000, cpu=True))


def test_as_good_is_not_clearly_slower_or_of_no_slower_a_link() -> None:
    assert is_as_good(network("a", 10.0, 1_000), network("b", 12.0, 100_000))
    assert not is_as_good(network("a", 10.0), network("b", 20.0))
    assert is_as_good(network("a", None, 100_000), network("b", 20.0, 100_000))
    assert not is_as_good(network("a", None, 10_000), network("b", 20.0, 100_000))


def test_the_order_is_by_measurement_then_link_then_as_given() -> None:
    def names(*networks: Network) -> list[str]:
        return [one.name for one in best_first(networks)]

    assert names(network("a", 1.0, 100_000), network("b", 9.0, 10_000), network("c", 40.0)) == ["c", "b", "a"]
    assert names(network("a", 9.0, 10_000), network("b", 9.5, 25_000)) == ["b", "a"]
    assert names(network("a"), network("b")) == ["a", "b"]
    assert names() == []


def test_a_figure_says_how_it_is_known() -> None:
    assert figure(network("eth1", 9.4)) == "eth1: 9.4 Gbit/s (8.93 to 9.87 over 12 transfers)"
    assert "limited by the CPU" in figure(network("eth1", 9.4, cpu=True))
    assert figure(network("eth1", None, 25_000)) == "eth1: not measured, link speed 25 Gbit/s"
    assert figure(network("eth1")) == "eth1: not measured, link speed not known"


def with_a_slow_node(one: Network, gbit_s: float) -> Network:
    part = Throughput(gbit_s, gbit_s * 0.95, gbit_s * 1.05, 3, False)
    return replace(one, slowest=SlowestPart("from node03", part, 10.0))


def test_a_slow_part_counts_for_its_network() -> None:
    sound, slow = network("b", 10.0), with_a_slow_node(network("a", 10.0), 1.0)
    assert is_clearly_faster(sound, slow)
    assert not is_clearly_faster(slow, sound)
    assert not is_clearly_faster(with_a_slow_node(sound, 1.0), slow)
    assert is_clearly_faster(with_a_slow_node(sound, 2.0), slow)
    assert best_first([slow, sound]) == (sound, slow)


def with_a_slow_way(one: Network, gbit_s: float) -> Network:
    part = Throughput(gbit_s, gbit_s, gbit_s, 1, False)
    return replace(one, slowest=SlowestPart("from node01 to node02", part, 10.0))


def test_slow_ways_count_except_against_each_other() -> None:
    sound, other = network("a", 10.0), network("b", 10.0)
    assert is_clearly_faster(sound, with_a_slow_way(other, 5.0))
    assert is_clearly_faster(with_a_slow_way(other, 5.0), network("a", 1.0))
    assert is_clearly_faster(with_a_slow_way(other, 5.0), with_a_slow_node(sound, 1.0))
    assert not is_clearly_faster(with_a_slow_way(other, 5.0), with_a_slow_way(sound, 1.0))


def test_a_slow_part_is_told_with_what_is_usual_and_why_it_concerns_all() -> None:
    slow = with_a_slow_node(network("eth0", 10.0), 1.0)
    told = "eth0: 1 Gbit/s (0.95 to 1.05 over 3 transfers) from node03, while 10 Gbit/s is usual there"
    assert figure(slow) == told
    assert why_slow("NCCL's", slow, network("eth1", 10.0)) == (
        f"NCCL's choice is reachable but slow: {told}; eth1: 10 Gbit/s (9.5 to 10.5 over 12 transfers). "
        "Every collective waits for the slowest part, and all nodes must use the same network"
    )
    assert why_slow("Gloo's", network("eth0", 1.0), network("eth1", 9.0)) == (
        "Gloo's choice is reachable but slow: eth0: 1 Gbit/s (0.95 to 1.05 over 12 transfers); "
        "eth1: 9 Gbit/s (8.55 to 9.45 over 12 transfers)"
    )
