# SPDX-License-Identifier: Apache-2.0
"""The shape of the house, read from its imports (docs/architecture.md).

Imports run downwards; SQL stays in `store/`, HTTP in `api/`; and `model/`, `index/` and
`candidates/` never look at the clock or throw dice, so that every result can be repeated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "berth"

#: For each part of the package, the parts that it may import besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "config": {"model"},
    "store": {"model"},
    "upkeep": {"model", "store"},
    "index": {"model", "store"},
    "candidates": {"model", "index"},
    "api": {"model", "store", "index", "candidates", "config"},
    "deploy": {"model", "store", "upkeep", "index", "candidates", "api", "config"},
    "wsgi": {"config", "deploy"},
    "direct": {"config", "deploy"},
    # By way of the API only, over HTTP or handed a client of `direct`.
    "hosts": {"model"},
    # Its former name.
    "compute": {"hosts"},
    "cli": {
        "model",
        "store",
        "upkeep",
        "index",
        "candidates",
        "api",
        "config",
        "deploy",
        "wsgi",
        "direct",
        "hosts",
    },
}

#: Libraries that belong to some parts only.
BELONGS_TO: dict[str, set[str]] = {
    "sqlalchemy": {"store", "upkeep"},
    "alembic": {"upkeep"},
    "sqlite3": {"store"},
    "falcon": {"api"},
    "jsonschema": {"api"},
    "fastjsonschema": {"api"},
    "msgspec": {"api", "candidates", "index"},
    "numpy": {"candidates", "index", "upkeep"},
    "pynvml": {"hosts"},
    "bcrypt": {"api"},
    "cryptography": {"cli"},
    "click": {"cli"},
    "rich": {"cli"},
    "granian": {"cli"},
    "yaml": {"hosts"},
    "libvirt": {"hosts"},
    "oslo_config": {"api", "cli", "config", "deploy", "direct", "wsgi"},
    "oslo_policy": {"api", "config"},
    "oslo_middleware": {"api", "config"},
    "prometheus_client": {"api", "hosts"},
    # Its options stand in [keystone_authtoken].
    "keystoneauth1": {"api", "config", "direct", "hosts"},
    "keystonemiddleware": {"api", "config"},
}

#: What a module may keep for the whole process: what follows from the arguments alone, or from the
#: life of a connection. Whatever depends on a database belongs to an object that depends on it too.
KEPT_BY_MODULES = {
    "api/allocation_candidates.py: _decode_kept": "a query and a microversion decide it",
    "api/caching.py: _date_of_second": "the second decides it",
    "api/media_types.py: admits_json": "the header decides it",
    "api/media_types.py: error_media_type": "the header decides it",
    "api/microversion.py: negotiate": "the header decides it",
    "api/openapi/handler.py: _rendered": "the release and the arguments decide it",
    "store/engine/libpq.py: _OF": "by connection of the driver, with which an entry ends",
    "store/engine/transaction.py: _insert_missing": "the engine and the table decide it",
}

#: The parts whose results can be repeated: the time and chance come in as arguments.
REPEATABLE = {"model", "index", "candidates"}

#: What those parts may not call. A `random.Random` handed in is fine, and so is its type.
CLOCK_AND_DICE = re.compile(
    r"""(\w+\.)* (
        time\.\w+ | datetime\.(now|utcnow|today) | date\.today
        | random\.(?!Random\b)\w+ | secrets\.\w+ | uuid\.uuid[14] | uuid[14] | os\.urandom
        | (np|numpy)\.random\.\w+ | default_rng | perf_counter(_ns)? | monotonic(_ns)?
    )""",
    re.VERBOSE,
)

#: Text that is a statement of SQL.
SQL_TEXT = re.compile(
    r"\s*(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s.+\sSET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA)\b",
    re.DOTALL,
)

#: Numbers that can hardly mean anything but an HTTP status.
STATUS_CODES = {400, 401, 403, 404, 405, 406, 409, 415, 503}


class Module:
    """One file of the package, parsed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def part(self) -> str:
        """The part of the package that it belongs to: `store`, or `direct` for `direct.py`."""
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")

    @property
    def dotted(self) -> str:
        """Its name to `import`."""
        parts = self.path.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts).removesuffix(".__init__")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.path.read_text(), str(self.path))

    def imports(self, *, at_once: bool = False) -> Iterator[tuple[int, str]]:
        """The line and the full name of everything that it imports.

        Args:
            at_once: only what it needs when it is imported itself; not what functions import, or
                what is there for types.
        """
        package = self.dotted if self.path.stem == "__init__" else self.dotted.rpartition(".")[0]
        for node in self.tree.body if at_once else ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package.split(".")[: -node.level + 1 or None] if node.level else []
                origin = ".".join([*base, *filter(None, [node.module])])
                yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)

    def calls(self) -> Iterator[tuple[int, str]]:
        """The line and the dotted name of everything that it calls by name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node.lineno, ast.unparse(node.func)

    def constants(self) -> Iterator[tuple[int, object]]:
        """The line and the value of every literal, docstrings left out."""
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                yield node.lineno, node.value

    def at(self, line: int) -> str:
        """A line of it, as a reader finds it."""
        return f"{self.path.relative_to(PACKAGE.parent)}:{line}"


MODULES = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def modules_of(parts: set[str]) -> list[Module]:
    """The modules of some parts."""
    return [module for module in MODULES if module.part in parts]


def modules_outside(parts: set[str]) -> list[Module]:
    """The modules of all other parts."""
    return [module for module in MODULES if module.part not in parts]


def test_every_part_has_its_place() -> None:
    """A new file or folder of the package is entered into `MAY_IMPORT`, and drawn in the docs."""
    assert {module.part for module in MODULES} <= {*MAY_IMPORT, "__init__"}


def test_imports_run_downwards() -> None:
    """A part imports only the parts below it."""
    upwards = [
        f"{module.at(line)} imports {name}"
        for module in modules_of(set(MAY_IMPORT))
        for line, name in module.imports()
        if name.startswith("berth.")
        and (part := name.split(".")[1]) in MAY_IMPORT
        and part not in MAY_IMPORT[module.part] | {module.part}
    ]
    assert not upwards, "\n".join(upwards)


def test_an_engine_knows_nothing_of_what_is_stored() -> None:
    """`store/engine` imports nothing else of `store`."""
    upwards = [
        f"{module.at(line)} imports {name}"
        for module in modules_of({"store"})
        if module.dotted.startswith("berth.store.engine")
        for line, name in module.imports()
        if name.startswith("berth.store.") and not name.startswith("berth.store.engine")
    ]
    assert not upwards, "\n".join(upwards)


def test_imports_run_in_no_circle() -> None:
    """Inside a part neither."""
    names = {module.dotted for module in MODULES}
    needs = {
        module.dotted: {
            name if name in names else name.rpartition(".")[0]
            for _, name in module.imports(at_once=True)
        }
        & names - {module.dotted}
        for module in MODULES
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]), pytrace=False)


@pytest.mark.parametrize(("library", "parts"), BELONGS_TO.items())
def test_a_library_stays_where_it_belongs(library: str, parts: set[str]) -> None:
    """SQLAlchemy is of the store, Falcon of the API, and so on (`BELONGS_TO`)."""
    strays = [
        f"{module.at(line)} imports {name}"
        for module in modules_outside(parts)
        for line, name in module.imports()
        if name.split(".")[0] == library
    ]
    assert not strays, "\n".join(strays)


def test_sql_stays_in_the_store() -> None:
    """No other part spells a statement."""
    strays = [
        f"{module.at(line)} has SQL: {value.strip()[:60]}"
        for module in modules_outside({"store", "upkeep"})
        for line, value in module.constants()
        if isinstance(value, str) and SQL_TEXT.match(value)
    ]
    assert not strays, "\n".join(strays)


def test_http_statuses_stay_in_the_api() -> None:
    """The parts below it do not know what an HTTP status is."""
    below = modules_of({"model", "store", "index", "candidates"})
    strays = [
        f"{module.at(line)} has the number {value}"
        for module in below
        for line, value in module.constants()
        if type(value) is int and value in STATUS_CODES
    ] + [
        f"{module.at(line)} imports {name}"
        for module in below
        for line, name in module.imports()
        if name.split(".")[0] == "http"
    ]
    assert not strays, "\n".join(strays)


def test_modules_keep_nothing_that_depends_on_a_database() -> None:
    """What is remembered between requests belongs to one object and dies with it; a process may
    have several databases, and ids mean something else in each."""
    parts = ("model", "store", "index", "candidates", "api")
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for part in parts
        for path in sorted((PACKAGE / part).rglob("*.py"))
        for name in kept_by(ast.parse(path.read_text()))
    }
    assert found == KEPT_BY_MODULES.keys()


def kept_by(module: ast.Module) -> Iterator[str]:
    """The names of a module under which something is kept: caches, and what begins empty."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and any(map(is_cache, node.decorator_list)):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if is_cache(node.value) or is_empty(node.value):
                yield ast.unparse(target)
        elif isinstance(node, ast.ClassDef) and not node.bases and not node.decorator_list:
            for inner in node.body:
                if isinstance(inner, ast.Assign) and is_empty(inner.value):
                    yield f"{node.name}.{ast.unparse(inner.targets[0])}"


def is_cache(node: ast.expr) -> bool:
    """Whether an expression remembers results of a function."""
    return bool(re.search(r"\b(lru_cache|functools\.cache|cache)\b", ast.unparse(node)))


def is_empty(node: ast.expr) -> bool:
    """Whether an expression makes something to be filled later."""
    containers = r"(\{\}|\[\]|(dict|list|set|(Weak\w+|Ordered|default)\w*)\(\w*\))"
    return bool(re.fullmatch(containers, ast.unparse(node), re.IGNORECASE))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_KEPT: dict[int, int] = {}", ["_KEPT"]),
        ("_KEPT = WeakKeyDictionary()", ["_KEPT"]),
        ("_KEPT = defaultdict(list)", ["_KEPT"]),
        ("@lru_cache(maxsize=4)\ndef known(a): ...", ["known"]),
        ("known = lru_cache(maxsize=4)(find)", ["known"]),
        ("class Kept:\n    texts = {}", ["Kept.texts"]),
        ("_FORMS = {1: 2}", []),
        ("def find():\n    found = {}", []),
    ],
)
def test_what_a_module_keeps_is_recognised(source: str, found: list[str]) -> None:
    """A check that cannot fail is none."""
    assert list(kept_by(ast.parse(source))) == found


def test_results_can_be_repeated() -> None:
    """No clock and no dice in `model/`, `index/` and `candidates/`."""
    strays = [
        f"{module.at(line)} calls {name}"
        for module in modules_of(REPEATABLE)
        for line, name in module.calls()
        if CLOCK_AND_DICE.fullmatch(name)
    ]
    assert not strays, "\n".join(strays)


@pytest.mark.parametrize("name", ["utils", "util", "common", "base", "helpers", "misc"])
def test_modules_are_named_by_what_they_know(name: str) -> None:
    """A module with such a name has not been thought through."""
    assert name not in {module.path.stem for module in MODULES}


def test_every_module_says_what_it_is_for() -> None:
    """A module begins with its licence and a docstring."""
    silent = [
        module.at(1)
        for module in MODULES
        if not module.path.read_text().startswith("# SPDX-License-Identifier: Apache-2.0")
        or ast.get_docstring(module.tree) is None
    ]
    assert not silent, "\n".join(silent)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("time.time()", True),
        ("datetime.datetime.now()", True),
        ("datetime.now(UTC)", True),
        ("np.random.default_rng(1)", True),
        ("uuid.uuid4()", True),
        ("random.shuffle(rows)", True),
        ("random.Random(1)", False),
        ("rng.shuffle(rows)", False),
        ("self.clock()", False),
        ("uuid.UUID(text)", False),
    ],
)
def test_a_call_to_the_clock_or_the_dice_is_recognised(source: str, found: bool) -> None:
    """The pattern that `test_results_can_be_repeated` relies on."""
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert bool(CLOCK_AND_DICE.fullmatch(ast.unparse(call.func))) is found
