"""Headings, prompts and fields name the host of the lines after them; words that are no hosts do not."""

from __future__ import annotations

import pytest

from ncclcheck.logs.readers.sections import Sections
from tests.logs.rounds import explain


@pytest.mark.parametrize(
    ("heading", "host"),
    [
        ("=== gpu-07 dmesg -T | tail ===", "gpu-07"),
        ("### ssh gpu014 dmesg -T", "gpu014"),
        ("==> node03.log <==", "node03"),
        ("--- host: trainer ---", "trainer"),
        ("[root@hgx-05 ~]# ibstat mlx5_3", "hgx-05"),
        ("ubuntu@worker-2:~/job$ dmesg", "worker-2"),
        ("$ ssh cn131 nvidia-smi", "cn131"),
        ("  Local host:   cn01", "cn01"),
        ("Name:             train-1-worker-0", "train-1-worker-0"),
        ("=== training log ===", ""),
        ("### rank0 output", ""),
        ("--- step 100 ---", ""),
        ("==> train.log <==", ""),
        ("=== gpu0 ===", ""),
        ("step 12 loss 0.3", ""),
    ],
)
def test_a_heading_names_the_host_of_the_next_line(heading: str, host: str) -> None:
    sections = Sections()
    sections.read(heading, 1)
    assert sections.host_of(2) == host


def test_a_heading_without_a_host_ends_the_section_before_it() -> None:
    sections = Sections()
    sections.read("=== gpu-07 dmesg ===", 1)
    assert sections.host_of(900) == "gpu-07"
    sections.read("=== training log ===", 901)
    assert sections.host_of(902) == ""
    sections.read("[root@hgx-05 ~]# ibstat", 903)
    sections.forget()
    assert sections.host_of(904) == ""


def test_a_field_speaks_for_its_own_paragraph_only() -> None:
    sections = Sections()
    sections.read("  Local host: cn01", 1)
    assert sections.host_of(5) == "cn01"
    assert sections.host_of(50) == ""


def test_the_host_of_a_section_is_the_culprit() -> None:
    log = (
        "### ssh gpu013 dmesg -T\n(nothing)\n### ssh gpu014 dmesg -T\n"
        "[Tue May  6 02:11:43 2025] NVRM: Xid (PCI:0000:4f:00): 79, GPU has fallen off the bus.\n"
        "### train.log\n[rank3]: RuntimeError: CUDA error: unspecified launch failure\n"
    )
    found = explain("job.log", log.encode()).findings[0]
    assert found.slug == "gpu-hardware"
    assert found.hosts[0] == "gpu014"


def test_a_line_with_its_own_label_is_not_of_the_section() -> None:
    log = (
        "=== gpu-07 dmesg ===\nnothing\n"
        "node3: Traceback (most recent call last):\nnode3:   File \"a.py\", line 1\nnode3: KeyError: 'x'\n"
    )
    assert explain("job.log", log.encode()).findings[0].hosts == ("node3",)
