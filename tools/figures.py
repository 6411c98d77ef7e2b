# SPDX-License-Identifier: Apache-2.0
"""Print how large and how tangled the package is, and fail where a figure exceeds its limit.

    python tools/figures.py                   # the working tree, against LIMITS
    python tools/figures.py --before v0.1.0   # beside another revision
    python tools/figures.py --commits         # which commits raised a limit, and did something else

Each limit is what the figure was when it was last lowered. Lower it when you lower the figure;
raise it only in a commit that touches no other file, and says why.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent

#: The parts to know for a change of the API.
API_PARTS: Final = ("model", "config", "index", "candidates", "api", "store")

#: The parts that a request passes. Their modules remember nothing.
REQUEST_PARTS: Final = (*API_PARTS, "edge")

CODE_LINES: Final = "code lines to know for a change of the API"
CIRCLES: Final = "import circles"
DEFERRED_CIRCLES: Final = "import circles, with deferred and type-only imports"
CACHES: Final = "module-level caches"
ALL_CODE: Final = "code lines of berth"
MODULES: Final = "modules of berth"
CONDITION: Final = "files that name one condition of a request"
RECORD: Final = "files that name one kind of named record"
JOURNEY: Final = "modules that {} passes"
MEDIAN: Final = "function length, median"
P95: Final = "function length, 95th percentile"
LONG_MODULES: Final = "modules over 600 lines"

#: No figure may exceed its limit.
LIMITS: Final[Mapping[str, int]] = {
    CODE_LINES: 32_863,
    CIRCLES: 0,
    DEFERRED_CIRCLES: 0,
    CACHES: 0,
    ALL_CODE: 58_114,
    MODULES: 404,
    CONDITION: 7,
    RECORD: 54,
    JOURNEY.format("GET candidates"): 40,
    JOURNEY.format("PUT allocations"): 40,
    JOURNEY.format("POST place"): 78,
    JOURNEY.format("POST explain"): 58,
    MEDIAN: 6,
    P95: 22,
    LONG_MODULES: 0,
}

#: What must be written again for the next of its kind: a condition of a request, and a kind of
#: records that have names.
_CONDITION: Final = re.compile(r"\bnot_under\b")
_RECORD: Final = re.compile(r"\bflavors?\b|flavor_|_flavor|Flavor")

#: Lines of a module beyond which it is usually two.
_LONG: Final = 600

#: Tokens that are not code.
_LAYOUT: Final = frozenset(
    {
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
        *(tokenize.ENCODING, tokenize.ENDMARKER),
    }
)


class Source:
    """A module: its text, its syntax and its place."""

    def __init__(self, path: Path, package: Path) -> None:
        self.relative = path.relative_to(package)
        self.text = path.read_text()
        self.tree = ast.parse(self.text, str(path))
        self.is_package = path.stem == "__init__"
        dotted = ".".join([package.name, *self.relative.with_suffix("").parts])
        self.name = dotted.removesuffix(".__init__")

    @property
    def part(self) -> str:
        """The folder of the package that it belongs to, or its own name."""
        return self.relative.parts[0].removesuffix(".py")


def main() -> int:
    """Print the table; 1 where the working tree exceeds a limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", metavar="REV", help="show the figures of this revision too")
    parser.add_argument("--commits", action="store_true", help="check who raised a limit")
    options = parser.parse_args()
    if options.commits:
        commits = [*raising(ROOT, Path(__file__).relative_to(ROOT).as_posix())]
        print(*commits, sep="\n", end="\n" if commits else "", file=sys.stderr)
        return 1 if commits else 0
    before = options.before
    sources = read_package(ROOT / "berth")
    figures = measure(sources) | journeys(ROOT)
    columns = [figures | lines_by_part(sources)]
    if before:
        with tempfile.TemporaryDirectory() as folder:
            earlier = read_package(extract(before, Path(folder)))
            columns.insert(0, measure(earlier) | journeys(Path(folder)) | lines_by_part(earlier))
    print_table([before, "now"] if before else ["now"], columns)
    exceeded = [name for name, limit in LIMITS.items() if figures.get(name, 0) > limit]
    for name in exceeded:
        print(f"{name}: {figures[name]}, and the limit is {LIMITS[name]}", file=sys.stderr)
        for place in places(name, sources):
            print(f"  {place}", file=sys.stderr)
    return 1 if exceeded else 0


def raising(checkout: Path, name: str) -> Iterator[str]:
    """The commits that raised a limit of a file and touched another one, since there is this
    check."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=checkout, capture_output=True, text=True, check=True
        ).stdout

    begun = git("log", "--format=%H", "-S", "def raising(", "--", name).split()[-1:]
    for commit in begun:
        for later in git("log", "--format=%H", f"{commit}..HEAD", "--", name).split():
            before, after = (
                limits_in(git("show", f"{revision}:{name}")) for revision in (f"{later}^", later)
            )
            raised = [each for each in after if after[each] > before.get(each, after[each])]
            files = git("diff-tree", "--no-commit-id", "--name-only", "-r", later).split()
            if raised and files != [name]:
                yield f"{later[:10]} raises {', '.join(raised)}, and touches other files"


def limits_in(text: str) -> dict[str, int]:
    """The limits that a version of this file sets, by the expression for the figure."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "LIMITS":
            assert isinstance(node.value, ast.Dict), "limits are a table"
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {ast.unparse(key): ast.literal_eval(value) for key, value in pairs if key}
    return {}


def journeys(checkout: Path) -> dict[str, int]:
    """How many modules some requests pass in the berth of a checkout; none if it cannot run."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("journeys.py"))],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = json.loads(done.stdout) if done.returncode == 0 else {}
    return {JOURNEY.format(name): len(modules) for name, modules in passed.items()}


def extract(revision: str, folder: Path) -> Path:
    """Put the package as it was in a revision into a folder; where it is there."""
    done = subprocess.run(
        ["git", "archive", revision, "berth"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "berth"


def read_package(package: Path) -> list[Source]:
    """All modules of a package."""
    return [Source(path, package) for path in sorted(package.rglob("*.py"))]


def print_table(heads: list[str], columns: list[dict[str, int]]) -> None:
    """Print the figures by name: one column for each revision, and the limits."""
    names = list(dict.fromkeys([*columns[-1], *columns[0]]))
    width = max(map(len, names))
    print(f"{'':{width}}", *(f"{head:>10.10}" for head in heads), f"{'limit':>10}")
    for name in names:
        values = [column.get(name, "") for column in columns]
        print(f"{name:{width}}", *(f"{value:>10}" for value in [*values, LIMITS.get(name, "")]))


def measure(sources: list[Source]) -> dict[str, int]:
    """Every figure that has a limit."""
    lengths = sorted(length for source in sources for length in function_lengths(source))
    return {
        CODE_LINES: sum(code_lines(source) for source in sources if source.part in API_PARTS),
        ALL_CODE: sum(map(code_lines, sources)),
        MODULES: len(sources),
        CONDITION: sum(bool(_CONDITION.search(source.text)) for source in sources),
        RECORD: sum(bool(_RECORD.search(source.text)) for source in sources),
        CIRCLES: len(circles(sources)),
        DEFERRED_CIRCLES: len(circles(sources, deferred=True)),
        CACHES: len(kept_by_modules(sources)),
        MEDIAN: int(statistics.median(lengths)),
        P95: lengths[len(lengths) * 95 // 100],
        LONG_MODULES: len(list(long_modules(sources))),
    }


def places(name: str, sources: list[Source]) -> list[str]:
    """Where a figure comes from, of those that count places."""
    if name in (CIRCLES, DEFERRED_CIRCLES):
        return [" <-> ".join(c) for c in circles(sources, deferred=name == DEFERRED_CIRCLES)]
    if name == CACHES:
        return kept_by_modules(sources)
    return list(long_modules(sources)) if name == LONG_MODULES else []


def lines_by_part(sources: list[Source]) -> dict[str, int]:
    """Code lines of each part, those of the API first."""
    lines: dict[str, int] = dict.fromkeys((f"code lines of {part}" for part in API_PARTS), 0)
    for source in sorted(sources, key=lambda source: source.part):
        name = f"code lines of {source.part}"
        lines[name] = lines.get(name, 0) + code_lines(source)
    return {name: number for name, number in lines.items() if number}


def kept_by_modules(sources: list[Source]) -> list[str]:
    """What modules of the request's parts keep for the life of the process."""
    return [
        f"{source.relative}: {name}"
        for source in sources
        if source.part in REQUEST_PARTS
        for name in caches(source.tree)
    ]


def long_modules(sources: list[Source]) -> Iterator[str]:
    """The modules that are too long, with their lines."""
    for source in sources:
        if (lines := source.text.count("\n")) > _LONG:
            yield f"{source.relative}: {lines} lines"


def code_lines(source: Source) -> int:
    """The lines of a module that are neither blank, comment nor docstring."""
    return len(lines_of_code(source))


def lines_of_code(source: Source) -> set[int]:
    """The numbers of these lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in _LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return lines - {
        line for node in docstrings(source.tree) for line in range(node.lineno, end_of(node) + 1)
    }


def docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """The docstrings of a module, its classes and its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first


def function_lengths(source: Source) -> Iterator[int]:
    """The lines of code of each function, from its `def` on."""
    code = lines_of_code(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield sum(line in code for line in range(node.lineno, end_of(node) + 1))


def end_of(node: ast.stmt) -> int:
    """The last line of a statement."""
    assert node.end_lineno is not None, "a parsed statement has an end"
    return node.end_lineno


def circles(sources: list[Source], *, deferred: bool = False) -> list[list[str]]:
    """The groups of modules that import each other, directly or by way of others.

    Args:
        deferred: count what functions import, and what is imported for types, too.
    """
    names = {source.name for source in sources}
    needs = {
        source.name: {
            imported
            for name in imports(source, deferred=deferred)
            for imported in [name if name in names else name.rpartition(".")[0]]
            if imported in names and imported != source.name
        }
        for source in sources
    }
    return [sorted(group) for group in strongly_connected(needs) if len(group) > 1]


def imports(source: Source, *, deferred: bool) -> Iterator[str]:
    """The full names of what a module imports; only when it is imported itself, unless deferred."""
    package = source.name if source.is_package else source.name.rpartition(".")[0]
    for node in ast.walk(source.tree) if deferred else run_at_import(source.tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: 1 - node.level or None] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def run_at_import(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that run when their module is imported: not functions, nor what is for types."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from run_at_import(node.orelse)
            continue
        yield node
        yield from run_at_import(ast.iter_child_nodes(node))


def strongly_connected(needs: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """The strongly connected components of a graph, after Tarjan."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []

    def visit(node: str) -> Iterator[set[str]]:
        number[node] = lowest[node] = len(number)
        path.append(node)
        for other in sorted(needs[node]):
            if other not in number:
                yield from visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in path:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            start = path.index(node)
            yield set(path[start:])
            del path[start:]

    for node in needs:
        if node not in number:
            yield from visit(node)


def caches(module: ast.Module) -> Iterator[str]:
    """The names of a module under which it keeps something for the life of the process."""
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
    """Whether an expression makes a container to be filled later."""
    containers = r"(\{\}|\[\]|(dict|list|set|(Weak\w+|Ordered|default)\w*)\(\w*\))"
    return bool(re.fullmatch(containers, ast.unparse(node), re.IGNORECASE))


if __name__ == "__main__":
    sys.exit(main())
