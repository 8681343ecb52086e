"""The environment NCCL acts on: the process environment, then the config files, in the order of each version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclcheck.model.fact import Missing
from ncclcheck.model.facts import NcclConfigFile
from ncclcheck.nccl import versions

SYSTEM_FILE = "/etc/nccl.conf"
HOME_FILE_NAME = ".nccl.conf"


def effective(
    environment: Mapping[str, str],
    config_files: Sequence[NcclConfigFile],
    version: str = versions.NEWEST,
    *,
    home_set: bool = True,
) -> dict[str, str]:
    """Return the variables as NCCL of `version` sees them after its own start.

    The process environment wins, empty values too. What is unset comes from one user file (`files_read`), then from
    /etc/nccl.conf. A file that could not be opened gives nothing, as for NCCL. A carriage return at the end of a value
    is part of it before 2.30. NCCL src/misc/param.cc (initEnv).
    """
    result = dict(environment)
    keeps_carriage_return = versions.parse(version) < versions.CARRIAGE_RETURN_STRIPPED_SINCE
    for file in files_read(environment, config_files, version, home_set=home_set):
        if not isinstance(file.settings, Missing):
            for name, value in file.settings.items():
                result.setdefault(name, value if keeps_carriage_return else value.removesuffix("\r"))
    return result


def files_read(
    environment: Mapping[str, str],
    config_files: Sequence[NcclConfigFile],
    version: str = versions.NEWEST,
    *,
    home_set: bool = True,
) -> tuple[NcclConfigFile, ...]:
    """Those of `config_files` that NCCL of `version` opens, in its order.

    From 2.23 a non-empty NCCL_CONF_FILE takes the place of ~/.nccl.conf, whether that file exists or not. The home is
    that of the passwd database up to 2.29 and $HOME from 2.30; without HOME there is then no such file.
    Where two home files are given, the first is $HOME's and the last the passwd home's.
    """
    number = versions.parse(version)
    named = environment.get("NCCL_CONF_FILE", "") if number >= versions.CONF_FILE_VARIABLE_SINCE else ""
    if named:
        user = [file for file in config_files if _is_path(file, named)]
    else:
        user = _home_files(environment, config_files, number, home_set)
    system = [file for file in config_files if file.path == SYSTEM_FILE]
    return (*user[:1], *system[:1])


def unknown_file(
    environment: Mapping[str, str],
    config_files: Sequence[NcclConfigFile],
    version: str = versions.NEWEST,
    *,
    home_set: bool = True,
) -> Missing | None:
    """Why the effective environment is not known: a file that NCCL would read, and we could not; None if there is none.

    A file that is not there, or may not be read, is not one: NCCL runs as the same user.
    """
    for file in files_read(environment, config_files, version, home_set=home_set):
        if isinstance(file.settings, Missing) and file.settings.missing not in {"absent", "denied"}:
            return Missing(file.settings.missing, f"{file.path}: {file.settings.detail}")
    ignores_variable = versions.parse(version) < versions.CONF_FILE_VARIABLE_SINCE
    has_home_file = any(file.path.endswith("/" + HOME_FILE_NAME) for file in config_files)
    if ignores_variable and environment.get("NCCL_CONF_FILE") and config_files and not has_home_file:
        detail = f"NCCL {version} does not know NCCL_CONF_FILE and reads ~/{HOME_FILE_NAME}, which was not read here"
        return Missing("absent", detail)
    return None


def source_of(
    name: str,
    environment: Mapping[str, str],
    config_files: Sequence[NcclConfigFile],
    version: str = versions.NEWEST,
    *,
    home_set: bool = True,
) -> str | None:
    """Where NCCL of `version` has the value of `name` from: "environment" or a file's path; None where it is unset."""
    if name in environment:
        return "environment"
    for file in files_read(environment, config_files, version, home_set=home_set):
        if not isinstance(file.settings, Missing) and name in file.settings:
            return file.path
    return None


def _is_path(file: NcclConfigFile, named: str) -> bool:
    return file.path == named or (
        not named.startswith("/") and file.path.endswith("/" + named.removeprefix("./"))
    )


def _home_files(
    environment: Mapping[str, str],
    config_files: Sequence[NcclConfigFile],
    number: versions.Version,
    home_set: bool,
) -> list[NcclConfigFile]:
    files = [file for file in config_files if file.path.endswith("/" + HOME_FILE_NAME)]
    named = environment.get("NCCL_CONF_FILE", "")
    files = [file for file in files if not (named and _is_path(file, named))] or files
    if number >= versions.HOME_VARIABLE_SINCE:
        return files[:1] if home_set else []
    return files[-1:]
