"""The values of options that several layers know. It imports nothing of ncclcheck, so `--help` pays nothing for it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

FailOn: TypeAlias = Literal["error", "warning", "never"]  # the lowest severity that makes the exit code 1
FAIL_ON: tuple[FailOn, ...] = get_args(FailOn)

ReportFormat: TypeAlias = Literal["text", "json", "junit", "md", "github"]  # of standard output
SCREEN_FORMATS: tuple[ReportFormat, ...] = get_args(ReportFormat)
FileFormat: TypeAlias = Literal["html", "prom", "csv"]  # a page of 5 MB is for a file

Protocol: TypeAlias = Literal["npd", "nagios"]  # of monitoring systems that run `node`
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

NodeList: TypeAlias = Literal["exclude", "hosts", "hostfile", "drain-slurm", "cordon"]  # isolate --print
NODE_LISTS: tuple[NodeList, ...] = get_args(NodeList)

HostOrder: TypeAlias = Literal["hostfile", "slurm-tree", "slurm-block", "labels"]  # matrix --print
HOST_ORDERS: tuple[HostOrder, ...] = get_args(HostOrder)
