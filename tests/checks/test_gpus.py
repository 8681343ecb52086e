"""GPUs in a sentence, and what keeps a value of them from being known."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.checks.gpus import by_text, closing, label, listed_gpus, no_driver, together, values
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import NotApplicable, NotKnown
from tests.builders import cluster, everywhere, with_facts
from tests.fact_builders import GONE
from tests.gpu_builders import with_all_gpus, with_gpu

ABSENT = Missing("absent", "no driver")


def test_a_gpu_has_its_address_where_it_is_known() -> None:
    gpu = listed_gpus(cluster(1))[3].gpu
    assert label(gpu) == "GPU 3 (0000:03:00.0)"
    assert label(replace(gpu, pci=GONE)) == "GPU 3"


UNSUPPORTED = Missing("unsupported", "x")


def test_values_that_a_model_does_not_have_are_neither_known_nor_unknown() -> None:
    other = with_gpu(
        with_gpu(cluster(1), "node01", 1, ecc=GONE), "node01", 2, name="NVIDIA T4", ecc=UNSUPPORTED
    )
    known, unknown = values(listed_gpus(other), "ecc")
    assert [on.gpu.index for on, _ in known] == [0, 3, 4, 5, 6, 7]
    assert unknown == [NotKnown(f"ecc of GPU 1: {GONE}", ("node01",))]


def test_a_value_that_its_like_have_is_unknown_where_the_driver_calls_it_unsupported() -> None:
    one_node = with_gpu(cluster(2), "node02", 2, ecc=UNSUPPORTED)
    assert values(listed_gpus(one_node), "ecc")[1] == [
        NotKnown("ecc of GPU 2: unsupported: x", ("node02",)),
    ]
    assert values(listed_gpus(with_all_gpus(cluster(2), ecc=UNSUPPORTED)), "ecc") == ([], [])


def test_many_names_are_cut() -> None:
    assert together(["a"]) == "a"
    assert together(["a", "b"]) == "a and b"
    assert together("abcdef") == "a, b, c, d and 2 more"


def test_hosts_with_the_same_texts_are_told_together() -> None:
    assert by_text([("n1", "a"), ("n2", "a"), ("n1", "b"), ("n3", "a")]) == [
        ("a; b", ("n1",)),
        ("a", ("n2", "n3")),
    ]


def test_how_a_check_ends() -> None:
    assert list(closing(cluster(2), True, "x")) == []
    assert list(closing(cluster(2), False, "has links")) == [NotApplicable("no GPU has links")]
    bare = with_facts(cluster(2), "node02", gpus=ABSENT)
    assert list(closing(bare, True, "x")) == [NotKnown(f"gpus: {ABSENT}", ("node02",), "gpus")]
    assert no_driver(bare) == ("node02",)
    assert list(closing(with_facts(bare, "node01", gpus=GONE), True, "x")) == [
        NotKnown(f"gpus: {GONE}", ("node01",), "gpus"),
        NotKnown(f"gpus: {ABSENT}", ("node02",), "gpus"),
    ]
    nowhere = everywhere(bare, gpus=ABSENT, torch_gpus=ABSENT)
    assert list(closing(nowhere, False, "is listed")) == [NotApplicable("no GPU is listed")]
