# SPDX-License-Identifier: Apache-2.0
"""The architecture, read from the syntax of the package (docs/architecture.md).

Imports run downwards; SQL stays in `store/`, HTTP in `api/`; and `model/`, `index/` and
`candidates/` never read the clock or a random source, so that every result can be repeated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tools.figures import caches, kept_by_modules, read_package

PACKAGE = Path(__file__).parent.parent / "berth"

#: For each part of the package, the parts that it may import besides itself.
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    # Text in, a request out.
    "pasted": set(),
    "config": {"model"},
    "store": {"model"},
    "upkeep": {"model", "store"},
    "index": {"model", "store"},
    "candidates": {"model", "index"},
    "api": {"model", "store", "index", "candidates", "config", "pasted"},
    "edge": {"model", "store", "index", "candidates", "api", "config"},
    # Static files, which `edge` sends.
    "web": set(),
    "deploy": {"model", "store", "upkeep", "index", "candidates", "api", "edge", "config"},
    "wsgi": {"config", "deploy", "extras"},
    "direct": {"api", "config", "deploy", "extras"},
    # By way of the API only, over HTTP or handed a client of `direct`.
    "hosts": {"model"},
    "client": {"hosts", "model"},
    "cli": {
        "model",
        "pasted",
        "store",
        "upkeep",
        "index",
        "candidates",
        "api",
        "edge",
        "config",
        "deploy",
        "wsgi",
        "direct",
        "hosts",
        "client",
        "extras",
    },
    # Which libraries are installed.
    "extras": set(),
}

#: Libraries that belong to some parts only.
BELONGS_TO: dict[str, set[str]] = {
    "sqlalchemy": {"store", "upkeep"},
    "alembic": {"upkeep"},
    "sqlite3": {"store"},
    "jsonschema": {"api"},
    "fastjsonschema": {"api"},
    "msgspec": {"model", "api", "edge", "candidates", "hosts", "index", "store"},
    "numpy": {"candidates", "index", "upkeep"},
    "pynvml": {"hosts"},
    "bcrypt": {"edge"},
    "cryptography": {"cli"},
    "click": {"cli"},
    "rich": {"cli"},
    "granian": {"edge"},
    "yaml": {"hosts"},
    "libvirt": {"hosts"},
    "oslo_config": {"api", "edge", "cli", "config", "deploy", "direct", "wsgi"},
    "oslo_policy": {"api", "config"},
    "oslo_middleware": {"edge", "config"},
    "prometheus_client": {"edge", "hosts"},
    # Its options stand in [keystone_authtoken].
    "keystoneauth1": {"edge", "client", "config", "direct", "hosts"},
    "keystonemiddleware": {"edge", "config"},
}

#: Names of engines, as SQLAlchemy and URLs spell them.
ENGINE_NAMES = {"sqlite", "postgresql", "postgres", "mysql", "mariadb"}

#: Who besides `store/engine` may compare such a name.
ASKS_FOR_ENGINES = {
    "berth.config": "the kind of a URL, before a database is open",
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

#: Names that say nothing of their value: "what was found", of which kind?
EMPTY_NAMES = {"one", "found", "known", "held", "told", "what", "there"}

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
        text = self.path.read_text()
        try:
            return ast.parse(text, str(self.path))
        except SystemError:
            # CPython 3.11 counts the depth of all parsers of a process together, and a thread that
            # another test left may parse too.
            return ast.parse(text, str(self.path))

    @cached_property
    def _import_statements(self) -> list[ast.AST]:
        """Wherever they stand: most tests here look at them."""
        return [
            node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom)
        ]

    def imports(self, *, at_once: bool = False) -> Iterator[tuple[int, str]]:
        """The line and the full name of everything that it imports.

        Args:
            at_once: only what it needs when it is imported itself; not what functions import, or
                what is there for types.
        """
        package = self.dotted if self.path.stem == "__init__" else self.dotted.rpartition(".")[0]
        for node in self.tree.body if at_once else self._import_statements:
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

    def bindings(self) -> Iterator[tuple[int, str]]:
        """The line and the name of every variable, parameter, attribute and function it binds."""
        yield from bindings(self.tree)

    def at(self, line: int) -> str:
        """A line of it, as a reader finds it."""
        return f"{self.path.relative_to(PACKAGE.parent)}:{line}"


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of every variable, parameter, attribute and function of a syntax."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.MatchAs(name=str(name))
                | ast.ExceptHandler(name=str(name))
            ):
                yield node.lineno, name


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


def test_only_the_store_s_engines_ask_for_an_engine() -> None:
    """Elsewhere an engine's `Dialect` says what is different about it."""
    strays = [
        place
        for module in MODULES
        if not module.dotted.startswith("berth.store.engine")
        and module.dotted not in ASKS_FOR_ENGINES
        for place in engine_names_in(module)
    ]
    assert not strays, "\n".join(strays)


def engine_names_in(module: Module) -> Iterator[str]:
    """Where a module has an engine's name as a whole text, or reads the name of a dialect."""
    for line, value in module.constants():
        if isinstance(value, str) and value.casefold() in ENGINE_NAMES:
            yield f"{module.at(line)} has the name {value}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and re.search(r"\bdialect\.name$", ast.unparse(node)):
            yield f"{module.at(node.lineno)} reads {ast.unparse(node)}"


@pytest.mark.parametrize(
    ("source", "is_stray"),
    [
        ('if engine == "sqlite": ...', True),
        ('ENGINES = ("mysql", "mariadb")', True),
        ("connection.dialect.name", True),
        ("op.get_bind().dialect.name in NAMES", True),
        ('"""The kind of database, such as sqlite."""', False),
        ('raise Failed("berth needs an SQLite file")', False),
        ("db.dialect.is_embedded", False),
        ("table.name", False),
    ],
)
def test_an_engine_s_name_is_recognised(source: str, is_stray: bool) -> None:
    """The search that `test_only_the_store_s_engines_ask_for_an_engine` relies on."""
    module = Module(PACKAGE / "made_up.py")
    module.tree = ast.parse(source)
    assert bool(list(engine_names_in(module))) is is_stray


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
    """SQLAlchemy is of the store, jsonschema of the API, and so on (`BELONGS_TO`)."""
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


#: Who may convert to structs: what lets msgspec read their annotations first.
CONVERTS_TO_STRUCTS = {"berth.model.structs", "berth.hosts.validation"}


def test_no_thread_is_the_first_to_convert_to_a_struct() -> None:
    """Others go through `berth.model.structs`, whose description says why."""
    strays = [
        f"{module.at(line)} calls {name}"
        for module in modules_outside(set())
        if module.dotted not in CONVERTS_TO_STRUCTS
        for line, name in module.calls()
        if name == "msgspec.convert"
    ]
    assert not strays, "\n".join(strays)


#: Who else may use the connection of a transaction: what looks at tables.
USES_CONNECTIONS = {"berth.store.versions"}


def test_the_store_sends_its_statements_through_tx() -> None:
    """`tx.connection` is for `upkeep`, which changes tables; nothing else goes past `tx`."""
    strays = [
        module.at(node.lineno)
        for module in modules_outside({"upkeep"})
        if not module.dotted.startswith("berth.store.engine")
        and module.dotted not in USES_CONNECTIONS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "tx.connection"
    ]
    assert not strays, "\n".join(strays)


#: What prints or asks, and the modules that may call it: they escape a client's text.
_DOORS = ("click.echo", "click.secho", "click.confirm", "click.prompt", "print", "Console")
_DOORKEEPERS = ("output", "columns", "tree_drawing", "progress")


def test_commands_print_through_one_door() -> None:
    """`berth.cli.output` makes a client's text safe for terminals; nothing else prints."""
    strays = [
        f"{module.at(line)} calls {name}"
        for module in modules_outside(set())
        for line, name in module.calls()
        if (name in _DOORS or name.endswith(("stdout.write", "stderr.write")))
        and not (module.part == "cli" and module.path.stem in _DOORKEEPERS)
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


def test_modules_keep_nothing() -> None:
    """What is remembered between requests belongs to one object and dies with it; a process may
    have several databases, and ids mean something else in each."""
    assert not kept_by_modules(read_package(PACKAGE))


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
    assert list(caches(ast.parse(source))) == found


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


def test_names_say_what_their_values_are() -> None:
    """`rows`, `provider` or `allocations`, not `found`, `one` or `held`."""
    empty = [
        f"{module.at(line)} binds {name}"
        for module in MODULES
        for line, name in module.bindings()
        if name.lstrip("_") in EMPTY_NAMES
    ]
    assert not empty, "\n".join(empty)


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "found: int",
        "a, (found, b) = c",
        "[found for found in rows]",
        "lambda found: 1",
        "def find(*, found): ...",
        "def found(): ...",
        "self.found = 1",
        "if (found := find()): ...",
        "with find() as found: ...",
        "match rows:\n    case [found]: ...",
        "try: ...\nexcept E as found: ...",
    ],
)
def test_a_name_that_is_bound_is_recognised(source: str) -> None:
    """Every form of syntax that `test_names_say_what_their_values_are` relies on."""
    assert "found" in {name for _, name in bindings(ast.parse(source))}
    assert "found" not in {name for _, name in bindings(ast.parse("rows = found.found(found=1)"))}


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
