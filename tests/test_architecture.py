"""The architecture as a test: layers, purity, few places for torch, no pickle, small documented and tested files."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ncclcheck.checks.registry import Check, every_check
from tests.durations import DATA, OWN_DURATIONS, constants, defaults, is_duration
from tests.tested_by import TESTED_BY

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ncclcheck"
LAYER = {
    "model": 0,
    "launch": 1,
    "nccl": 2,
    "measure": 2,
    "facts": 2,
    "logs": 2,
    "exchange": 3,
    "spawn": 3,
    "checks": 3,
    "bench": 4,
    "advice": 4,
    "report": 4,
    "run": 5,
    "cli": 6,
}
PURE = ("model", "nccl", "measure", "launch", "logs", "checks", "advice", "report")
# The one file of a pure package that reads the world: nobody pure imports it.
WORLD_FILES = frozenset({"logs/log_files.py"})
WORLD_MODULES = frozenset(
    {
        "os", "socket", "subprocess", "pathlib", "ctypes", "psutil", "torch", "netifaces", "pynvml",
        "time", "datetime", "threading", "multiprocessing", "signal", "select", "selectors", "shutil", "tempfile",
        "glob", "fcntl", "resource", "platform", "asyncio", "http", "urllib", "secrets", "locale",
        "importlib", "pkgutil",
    }
)  # fmt: skip
WORLD_BUILTINS = frozenset({"open", "input", "print"})
MAY_USE = {
    "checks/registry.py": frozenset(
        {"time", "importlib", "pkgutil"}
    ),  # seconds of a check; walks the package
    "launch/launcher_registry.py": frozenset({"importlib", "pkgutil"}),  # walks the package
    "report/fleet/metrics.py": frozenset({"datetime"}),  # reads the date in a report, never the clock
    "model/formats/tables.py": frozenset(
        {"pkgutil"}
    ),  # a table that ships with the package is a constant, not the world
}
TORCH_FILES = (
    "exchange/store/tcp.py",
    "bench/",
    "facts/gpu/gpu_work_child.py",
    "facts/software/torch_trial_child.py",
)
PICKLES = frozenset({"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"})
PICKLE_CALLS = frozenset(
    {
        "all_gather_object",
        "gather_object",
        "scatter_object_list",
        "broadcast_object_list",
        "send_object_list",
        "recv_object_list",
    }
)
MOST_LINES = 400
MOST_FILES = 20
MOST_FUNCTION_LINES = 60
FILES = sorted(PACKAGE.rglob("*.py"))
MODULES = [path for path in FILES if path.name != "__init__.py"]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def in_each(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test of all these files, which names each that breaks the rule."""

    def of_all(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for path in paths:
                try:
                    rule(path)
                except AssertionError as error:
                    broken.append(f"{name_of(path)}: {error}")
            assert not broken, "\n".join(broken)

        assert paths
        test.__name__ = rule.__name__
        return test

    return of_all


def package_of(path: Path) -> str | None:
    """The layer's package of a file; None for ncclcheck itself."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node of the tree, without what stands under `if TYPE_CHECKING:`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from runtime_nodes(other)
        else:
            yield from runtime_nodes(child)


def imported(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, int]]:
    """Each module that the nodes import, with the line; `from a import b` counts as a and a.b."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield node.module or "", node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


@in_each(FILES)
def test_a_module_imports_only_from_lower_layers_and_its_own_package(path: Path) -> None:
    own = package_of(path)
    if own is None:
        return
    for module, line in imported(ast.walk(parsed(path))):
        parts = module.split(".")
        if parts[0] != "ncclcheck" or len(parts) < 2 or parts[1] not in LAYER or parts[1] == own:
            continue
        assert LAYER[parts[1]] < LAYER[own], f"line {line}: {own} imports {module}, which is not below it"


@in_each([path for path in FILES if package_of(path) in PURE and name_of(path) not in WORLD_FILES])
def test_a_pure_module_reads_nothing_of_the_world(path: Path) -> None:
    allowed = MAY_USE.get(name_of(path), frozenset())
    for module, line in imported(runtime_nodes(parsed(path))):
        parts = module.split(".")
        assert parts[0] not in WORLD_MODULES - allowed, f"line {line}: imports {module}"
        if parts[0] == "ncclcheck" and len(parts) > 1 and parts[1] in LAYER:
            assert parts[1] in PURE, f"line {line}: imports {module}, which is not pure"
            file = f"{'/'.join(parts[1:3])}.py"
            assert file not in WORLD_FILES, f"line {line}: imports {module}, which reads the world"
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in WORLD_BUILTINS, f"line {node.lineno}: calls {node.func.id}()"


@in_each(FILES)
def test_torch_is_imported_only_inside_functions_and_in_few_files(path: Path) -> None:
    tree = parsed(path)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in runtime_nodes(tree):
        for module, line in imported(iter([node])):
            if module.split(".")[0] == "torch":
                assert name_of(path).startswith(TORCH_FILES), f"line {line}: {module} is not for this file"
                assert id(node) in inside, f"line {line}: {module} is imported with the module"


# What knows that the store is torch's TCPStore, and what bounds each call: for exchange/store/ alone.
STORE_IMPLEMENTATIONS = ("ncclcheck.exchange.store.tcp", "ncclcheck.exchange.store.deadline_store")


@in_each([path for path in FILES if not name_of(path).startswith("exchange/store/")])
def test_only_the_store_package_names_the_media_of_a_store(path: Path) -> None:
    tree = parsed(path)
    for module, line in imported(ast.walk(tree)):
        assert not module.startswith(STORE_IMPLEMENTATIONS), f"line {line}: open a store with store.opening"
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else ""
        assert name not in {"TcpStore", "DeadlineStore"}, f"{name}: annotate with store.base.Store"


STORE_CALLS = ("get", "set", "add", "wait", "get_document", "set_document", "wait_document", "wait_for")


def store_keys(tree: ast.Module) -> Iterator[ast.expr]:
    """The first argument of every call of a method of a store, as far as names tell which object is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            is_store = ast.unparse(node.func.value).endswith(("store", "served", "ranks"))
            if is_store and node.func.attr in STORE_CALLS:
                yield node.args[0]


@in_each([path for path in FILES if not name_of(path).startswith("exchange/store/")])
def test_the_keys_of_the_store_are_listed_in_one_file(path: Path) -> None:
    for key in store_keys(parsed(path)):
        is_text = isinstance(key, ast.JoinedStr) or (
            isinstance(key, ast.Constant) and isinstance(key.value, str)
        )
        assert not is_text, f"line {key.lineno}: take the key from exchange/store/keys.py"


@in_each(
    [path for path in FILES if path.name != "timeouts.py" and not name_of(path).startswith(OWN_DURATIONS)]
)
def test_durations_stand_in_one_file(path: Path) -> None:
    tree = parsed(path)
    for constant, line in constants(tree):
        is_own = is_duration(constant) and (name_of(path), constant) not in DATA
        assert not is_own, f"line {line}: move {constant} to ncclcheck/timeouts.py"
    for argument, value, line in defaults(tree):
        is_own = (
            argument.endswith("_s") and isinstance(value, ast.Constant) and value.value not in (0, 0.0, None)
        )
        assert not is_own, f"line {line}: take the default of {argument} from ncclcheck/timeouts.py"


@in_each(FILES)
def test_nothing_is_unpickled_evaluated_or_given_to_a_shell(path: Path) -> None:
    tree = parsed(path)
    for module, line in imported(ast.walk(tree)):
        assert module.split(".")[0] not in PICKLES, f"line {line}: imports {module}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: bare except"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        assert called not in {"eval", "exec", "torch.load", "torch.save", "os.system"}, (
            f"line {node.lineno}: {called}"
        )
        assert called.rpartition(".")[2] not in PICKLE_CALLS, f"line {node.lineno}: {called} pickles"
        for keyword in node.keywords:
            is_shell = keyword.arg == "shell" and ast.unparse(keyword.value) != "False"
            assert not is_shell, f"line {node.lineno}: shell=True"


@in_each(MODULES)
def test_a_file_is_short_and_says_what_it_is_for(path: Path) -> None:
    tree = parsed(path)
    assert ast.get_docstring(tree), "a module opens with one sentence saying what it is for"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MOST_FUNCTION_LINES, f"{node.name} has {lines} lines"


def test_no_folder_has_more_files_than_a_reader_takes_in() -> None:
    """A family of checks apart: its list is a table, found by walking it."""
    files: dict[Path, int] = {}
    for path in FILES:
        files[path.parent] = files.get(path.parent, 0) + 1
    crowded = {name_of(folder): count for folder, count in files.items() if count > MOST_FILES}
    assert not {name for name in crowded if not name.startswith("checks/")}, crowded


def has_behaviour(path: Path) -> bool:
    """True unless the file only declares records: then there is nothing that a test could find wrong."""
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(parsed(path)))


@in_each(MODULES)
def test_a_file_with_behaviour_has_a_test_file(path: Path) -> None:
    name = name_of(path)
    if name not in TESTED_BY and not has_behaviour(path):
        return
    if path.parent == PACKAGE / "checks" / "logs" and not path.name.startswith("_"):
        slug = path.stem.replace("_", "-")
        assert has_log_case(slug), f"expected a case tests/logs/cases/{slug}-*.log that expects this cause"
        return
    expected = TESTED_BY.get(name, f"{Path(name).parent.as_posix()}/test_{path.name.lstrip('_')}")
    assert (ROOT / "tests" / expected).is_file(), f"expected tests/{expected}"


def has_log_case(slug: str) -> bool:
    """Return True if a log among the cases expects that cause; its first line says so."""
    cases = (ROOT / "tests" / "logs" / "cases").glob(f"{slug}-*.log")
    heads = (case.read_bytes().partition(b"\n")[0].decode() for case in cases)
    return any(slug in re.split("[:,;] ?", head) for head in heads)


def test_the_list_of_files_tested_elsewhere_holds_no_leftovers() -> None:
    assert set(TESTED_BY) <= {name_of(path) for path in FILES}


def test_every_package_is_a_layer() -> None:
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert found == set(LAYER)


@in_each(
    [path for path in MODULES if len(path.relative_to(PACKAGE).parts) == 3 and package_of(path) == "checks"]
)
def test_a_family_of_checks_holds_checks_and_helpers_with_an_underscore(path: Path) -> None:
    bodies = {check.body.__module__ for check in every_check()}
    is_check = ".".join(path.relative_to(ROOT).with_suffix("").parts) in bodies
    assert is_check != path.name.startswith("_"), "a check has no leading underscore, and a helper has one"


def test_the_top_of_checks_holds_no_helper_of_a_single_family() -> None:
    families = {path.parent.name for path in (PACKAGE / "checks").glob("*/__init__.py")}
    users: dict[str, set[str]] = {}
    for path in MODULES:
        package, *folders = path.relative_to(PACKAGE).parts[:-1] or [""]
        for module, _ in imported(ast.walk(parsed(path))):
            users.setdefault(module, set()).add(folders[0] if package == "checks" and folders else package)
    for path in (PACKAGE / "checks").glob("*.py"):
        found = users.get(f"ncclcheck.checks.{path.stem}", set())
        assert len(found) != 1 or not found <= families, f"{path.name} is used by {found} only"


@pytest.mark.parametrize("check", every_check(), ids=lambda check: str(check.slug))
def test_a_check_is_one_documented_file_named_after_it(check: Check) -> None:
    module = check.body.__module__.rpartition(".")[2]
    assert module == check.slug.replace("-", "_")
    assert check.code.startswith("NC")
    assert check.code[2:].isdigit()
    for heading in ("Why it matters", "How to fix", "Source"):
        assert f"## {heading}" in check.manual, f"the manual page has no section {heading!r}"


def test_codes_and_slugs_are_unique_and_a_family_shares_its_hundred() -> None:
    checks = every_check()
    assert len({check.code for check in checks}) == len(checks)
    assert len({(check.slug, check.subject) for check in checks}) == len(checks)
    families: dict[str, set[str]] = {}
    for check in checks:
        families.setdefault(check.body.__module__.split(".")[2], set()).add(check.code[:3])
    assert all(len(hundreds) == 1 for hundreds in families.values()), families
