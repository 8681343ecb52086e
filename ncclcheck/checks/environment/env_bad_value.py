"""NC603 env-bad-value."""

from __future__ import annotations

from collections.abc import Iterator

from ncclcheck.checks.environment._devices import rdma_devices, tensorpipe_interface
from ncclcheck.checks.environment._settings import (
    EnvironmentPlace,
    Judged,
    OneAnswer,
    SettingFault,
    findings,
    shown,
)
from ncclcheck.checks.ifname_settings import NCCL_VARIABLE, IfnameSetting, excludes_into_loopback, setting_of
from ncclcheck.checks.registry import Answer, check
from ncclcheck.model.fact import Missing
from ncclcheck.model.finding import SEVERITIES, Fix
from ncclcheck.model.snapshot import Snapshot
from ncclcheck.nccl import versions
from ncclcheck.nccl.variables.variables import TABLE
from ncclcheck.nccl.variables.variables_numbers import Misreading
from ncclcheck.nccl.variables.variables_types import Variable, is_read, where_from
from ncclcheck.nccl.variables.variables_values import misread


@check(
    "NC603",
    "env-bad-value",
    "Every setting is read as it is written",
    needs=("environment", "nccl"),
    alike=("environment", "gpus", "interfaces", "nccl", "rdma", "software"),
    by_node=True,
    image=True,
)
def env_bad_value(snapshot: Snapshot) -> Iterator[Answer]:
    """NCCL and torch read the value of every variable as it is written.

    ## Why it matters
    NCCL reads numbers with strtoll: words are 0 (from 2.32 the default), so `NCCL_IB_DISABLE=true` disables nothing;
    `010` is 8; `4M` is 4. Unknown words are mostly ignored without a message (`NCCL_P2P_LEVEL=nvl`,
    `NCCL_SOCKET_FAMILY=ipv4`), or turn all messages off (`NCCL_DEBUG=1`), or end the job (`NCCL_ALGO=rings` from
    2.24). Blanks, quotes and Windows line ends are part of the value. It is an error if the effect is the opposite of
    the intent or the job fails. The rules depend on the NCCL version of the node; if it is not known, only what all
    versions do is reported. Device names are compared with those of the node: `NCCL_IB_HCA=mlx5_1` also matches
    mlx5_10.

    ## How to fix
    Use the value that the finding proposes, or remove the variable.

    ## Source
    NCCL src/misc/param.cc (ncclLoadParam), src/debug.cc, src/graph/tuning.cc (parseList), src/graph/paths.cc
    (ncclGetLevel), src/misc/socket.cc, src/include/param/ (from 2.30.7); torch's c10d/Utils.hpp.
    """
    yield from findings(snapshot, _judge)


def _judge(place: EnvironmentPlace) -> Iterator[Judged]:
    for name in sorted(place.environment):
        variable, value = TABLE.get(name), place.value(name)
        if variable is None or value is None or (name == NCCL_VARIABLE and _ends_on_loopback(place)):
            continue
        misreadings = [_misread(variable, value, version, place) for version in place.versions()]
        wrong = [misreading for misreading in misreadings if misreading is not None]
        if wrong and len(wrong) < len(misreadings):
            yield OneAnswer(f"how NCCL reads {shown(name, value)} depends on its version, which is not known")
        elif wrong:
            yield _case(
                place,
                variable,
                value,
                max(reversed(wrong), key=lambda misread: SEVERITIES.index(misread.weight)),
            )
    yield from rdma_devices(place)
    yield from tensorpipe_interface(place)
    yield from _config_file(place)


def _ends_on_loopback(place: EnvironmentPlace) -> bool:
    """True where the value is the affair of ifname-excludes-into-loopback, which judges the node's first rank."""
    setting = setting_of(place.host, place.facts)
    return place.rank is None and isinstance(setting, IfnameSetting) and excludes_into_loopback(setting)


def _misread(variable: Variable, value: str, version: str, place: EnvironmentPlace) -> Misreading | None:
    """Names that this version does not read are the affair of another check."""
    if variable.owner == "NCCL" and not is_read(variable, version):
        return None
    return misread(variable, value, version, place.environment)


def _case(place: EnvironmentPlace, variable: Variable, value: str, wrong: Misreading) -> SettingFault:
    name = variable.name
    reader = (
        f"torch {place.torch or ''}".rstrip()
        if variable.owner == "torch"
        else f"NCCL {place.nccl}"
        if place.nccl
        else "NCCL"
    )
    if wrong.better is not None:
        fix = Fix(f"write {name}={wrong.better}", (), {name: wrong.better})
    else:
        fix = Fix("write a valid value, or remove it", (f"unset {name}",))
    return SettingFault(
        wrong.weight,
        (name,),
        f"{reader} misreads {shown(name, value)}",
        f"it {wrong.what}",
        f"{name}={wrong.better}" if wrong.better is not None else "a valid value",
        where_from(variable),
        fix,
    )


def _config_file(place: EnvironmentPlace) -> Iterator[SettingFault]:
    """NCCL_CONF_FILE takes the place of ~/.nccl.conf from 2.23, also where there is no such file."""
    path, choice = place.value("NCCL_CONF_FILE"), place.facts.nccl
    if not path or isinstance(choice, Missing) or path.startswith("~"):
        return
    if place.nccl is not None and versions.parse(place.nccl) < versions.CONF_FILE_VARIABLE_SINCE:
        return
    file = next((config_file for config_file in choice.config_files if config_file.path == path), None)
    if (
        file is not None
        and isinstance(file.settings, Missing)
        and file.settings.missing in {"absent", "denied"}
    ):
        yield SettingFault(
            "warning",
            ("NCCL_CONF_FILE",),
            f"{shown('NCCL_CONF_FILE', path)} cannot be read ({file.settings})",
            "NCCL reports no error and no longer reads ~/.nccl.conf, so the settings of both files are missing",
            "a file that this process may read",
            "NCCL src/misc/param.cc (initEnv)",
            Fix("name a file that exists, or remove it", ("unset NCCL_CONF_FILE",)),
        )
