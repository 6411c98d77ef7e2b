# SPDX-License-Identifier: Apache-2.0
'''Wire tables: rules of the API as text, one row a rule, and the runner that tries them.

    @rules(
        """
        an old generation is a conflict @1.19-
            PUT $host/aggregates {aggregates: [$new], seen: 0}
            409 placement.concurrent_update Please update the generation
        a name has letters, digits and _ only
            PUT /traits/$1 => 400 The trait is invalid
            || CUSTOM_a || CUSTOM_
        """,
        world="host VCPU=4(used:1) @A",
    )
    def test_aggregates(rule: Rule, wire: Client) -> None:
        """The rows of the table."""
        rule.check(wire)

A line at the left margin is a rule, with its microversions: the first and the last of each range
are tried (all with full effort), the newest where none is named. Below it stand requests, each with
its answer, after `=>` or on the next line; a line further to the right continues the one above.

    > Name: value         a header of the next request; `> Name:` leaves one out
    >> Name: value        a header of all requests from here on
    PUT $host/x {a: 1}    a request; its body is JSON in YAML's short form, or bytes as Python has;
                          ` @1.7` at its end asks for that microversion, ` @none` for none
    200 {a: 1, ...}       its answer; `...` stands for further members or items, _ for any value;
                          lists have no order; JSON lines are a list
    200 b'...'            part of its body, without blanks
    400 code text ... x   a refusal: its code, if it is not that of most, and what its detail says
                          (what its text says, if it is 401, or no JSON because of `> Accept`),
                          behind other members of its error, if any: `{pointer: /a}`
    < Name: value         a header of the answer, of which `...` leaves out a part; `< Name:` is not
                          there
    | one | two           a case, whose cells are $1 and $2: the rule is tried with each; the last
                          cell may name microversions, as in ` | @1.7-1.9`
    || one || two         two cases of one cell each

Each rule has the world of its table for itself, a fresh one for each case and microversion if it
changes anything. `$host` is the uuid of a provider of the world, and at the beginning of a path the
path of it; `$host.name`, `$host.generation` and `$host.consumer` (who holds what is used) belong to
it. `$A` is an aggregate, `$CUSTOM_X` a class or trait; `$A.upper` and `$A.lower` are other forms. A
name that nothing has is a new uuid (or name, after CUSTOM_), which then keeps it; as a value in an
answer it takes what stands there.
`$(name)` has letters after it, and x*256 is repeated so often. `seen` is short for
resource_provider_generation; its value may be a provider. `CLAIM host VCPU=1 pool DISK_GB=2 {...}`
is a body for PUT /allocations/{consumer} as its microversion wants it, with some members replaced,
or `absent`; `CLAIMS vm: host VCPU=1; other: host VCPU=2 {...}` is one for POST, and `RESHAPE host
VCPU=8; child DISK_GB=9 {...} >> vm: child VCPU=1 {...}` one for POST /reshaper, with the present
generations. `200 PROVIDERS host child` is an answer that lists these.

A request that is refused, and was not GET, must have changed nothing that can be read.
'''

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from json import loads
from random import Random
from typing import Any, Final

import pytest
import yaml

from tests.api.answers import UNDEFINED, assert_refused
from tests.api.claims import LEFT_OUT, claim_body
from tests.api.versions import versions
from tests.api.whole_state import everything_read
from tests.api.worlds import (
    done,
    generation,
    new_custom_name,
    new_uuid,
    put_aggregates,
    put_inventories,
    put_traits,
)
from tests.client import Client, Response
from tests.effort import is_full
from tests.routes import BERTH_ROUTES, ROUTES, SEARCHES, route_of
from tests.worlds import MAX_INT, World, inventory_fields
from tests.worlds import world as drawn

_OWN: Final = "/berth/v1"
_OWN_UNDEFINED: Final = "berth.undefined_code"
_REST: Final = "..."
_ANY: Final = "_"

_REQUEST: Final = re.compile(r"([A-Z]+) ([/$]\S*)(?: (?!@)(.*?))?(?: @(\S+))?")
_ANSWER: Final = re.compile(r"(\d{3})(?: ((?:placement|berth)\.\S+))?(?: (.*))?")
_NAME: Final = re.compile(r"\$(?:(\w+)|\((\w+)\))(\.(?:name|generation|consumer|upper|lower)\b)?")
_REPEATED: Final = re.compile(r"(.)\*(\d{2,})")


def rules(
    table: str, *, world: str = "", classes: str = "", traits: str = ""
) -> pytest.MarkDecorator:
    """Run a test once for each rule of a table, which it gets as `rule`.

    Args:
        classes: names that exist besides those in the world, as do `traits`.
    """
    fleet = drawn(world, classes=classes, traits=traits)
    rows = _rows(table, fleet)
    return pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.id) for rule in rows])


@dataclass(frozen=True)
class Rule:
    """One row of a table."""

    sentence: str
    versions: tuple[str | None, ...]
    lines: tuple[str, ...]
    cases: tuple[tuple[str, ...], ...]
    fleet: World

    @property
    def id(self) -> str:
        """Its sentence, as a part of a pytest id."""
        return re.sub(r"\W+", "-", self.sentence).strip("-")

    @cached_property
    def routes(self) -> frozenset[tuple[str, str]]:
        """Method and template of each route that it asks."""
        asked = set()
        for case in self.cases:
            for step in _steps(self.lines, case):
                path = re.sub(r"^\$\w+", "/resource_providers/x", step.path).partition("?")[0]
                if route := route_of(path, ROUTES + BERTH_ROUTES):
                    asked.add((step.method, route.template))
        return frozenset(asked)

    def check(self, client: Client, meaning: Mapping[str, str] | None = None) -> None:
        """Try every case at every microversion.

        Args:
            meaning: names of what stands on the server already, and what they mean.
        """
        scene = None
        for case in self.cases:
            steps = _steps(self.lines, case)
            for version in self._versions(case):
                if scene is None or scene.is_changed:
                    scene = Scene(client, self.fleet, {**(meaning or {})})
                for step in steps:
                    try:
                        scene.play(step, step.version if step.versioned else version)
                    except Exception as error:
                        error.add_note(f"{self.sentence}: {step.line}\n(at {version}, {case})")
                        raise

    def _versions(self, case: tuple[str, ...]) -> Sequence[str | None]:
        last = case[-1] if case else ""
        return [*_versions(last[1:])] if last.startswith("@") else self.versions


@dataclass(frozen=True)
class Step:
    """A request, and the answer to it."""

    line: str
    method: str
    path: str
    body: str
    versioned: bool
    version: str | None
    headers: Mapping[str, str | None]
    status: int
    code: str
    answer: str
    answer_headers: dict[str, str | None]


@dataclass
class Scene:
    """A world that stands on a server, and what the names of a rule mean there."""

    client: Client
    fleet: World
    meaning: dict[str, Any] = field(default_factory=dict)
    consumers: set[str] = field(default_factory=set)
    #: All that could be read after the last refusal, if nothing was written since.
    state: object = None
    is_changed: bool = False

    def __post_init__(self) -> None:
        self.value("project")
        for name in self.fleet.custom_classes:
            done(self.client.put(f"/resource_classes/{self.value(name)}"), 201)
        for name in self.fleet.custom_traits:
            done(self.client.put(f"/traits/{self.value(name)}"), 201)
        for provider in self.fleet.providers:
            self._build(provider.name)

    def _build(self, name: str) -> None:
        provider, client, uuid = self.fleet.by_name[name], self.client, self.value(name)
        body = {"name": f"{name}-{uuid}", "uuid": uuid}
        if provider.parent:
            body["parent_provider_uuid"] = self.value(provider.parent)
        done(client.post("/resource_providers", json=body), 200)
        records = {
            self._class(one): inventory_fields(stock) for one, stock in provider.stocks.items()
        }
        if provider.used:
            put_inventories(client, uuid, dict.fromkeys(records, MAX_INT))
            claims = {uuid: {self._class(one): used for one, used in provider.used.items()}}
            claim = claim_body("1.39", claims, project=self.value("project"))
            done(client.put(f"/allocations/{self.value(f'{name}.consumer')}", json=claim), 204)
            self.consumers.add(self.value(f"{name}.consumer"))
        if records:
            put_inventories(client, uuid, records)
        if provider.aggregates:
            put_aggregates(client, uuid, [self.value(one) for one in provider.aggregates])
        if provider.traits:
            put_traits(client, uuid, [self._class(one) for one in provider.traits])
        for drain in provider.drains:
            effect = "none" if drain in self.fleet.announced else "exclude"
            drained = [self.value(one) for one in self.fleet.drains[drain]]
            if name == self.fleet.drains[drain][-1]:
                body = {"providers": drained, "effect": effect}
                path = f"{_OWN}/drains/{self.value(drain)}"
                assert client.put(path, json=body).status in (200, 201)

    def _class(self, name: str) -> str:
        return str(self.value(name)) if name.startswith("CUSTOM_") else name

    def value(self, name: str) -> Any:
        """What a name means: a new uuid, or name, if nothing yet."""
        if name not in self.meaning:
            new = new_custom_name() if name.startswith("CUSTOM_") else new_uuid()
            self.meaning[name] = new
        return self.meaning[name]

    def play(self, step: Step, version: str | None) -> None:
        """Send a request and hold the answer to its row.

        Raises:
            AssertionError: it is another.
        """
        path = self.text(re.sub(r"^\$(?=\w)", "/resource_providers/$", step.path))
        match = re.match(r"/allocations/([^/?]+)$", path)
        if match and match[1] not in self.consumers:
            self.consumers.add(match[1])
            self.state = None
        refused = step.status >= 400 and (step.method, path) not in SEARCHES
        refused = refused and step.method not in ("GET", "HEAD")
        if refused and self.state is None:
            self.state = self.everything(own=path.startswith(_OWN))
        answer = self.client.request(
            step.method,
            path,
            version=version,
            headers={name: value and self.text(value) for name, value in step.headers.items()},
            **self._body(step.body, version or "1.0"),
        )
        self._compare(step, answer, "1.39" if path.startswith(_OWN) else version or "1.0")
        if refused:
            now = self.everything(own=path.startswith(_OWN))
            assert now == self.state, "it was refused, and has changed something"
        elif step.method not in ("GET", "HEAD"):
            self.state, self.is_changed = None, True

    def everything(self, *, own: bool) -> object:
        """All that can be read of the world and beside it."""
        providers = [self.value(name) for name in self.fleet.by_name]
        consumers, projects = sorted(self.consumers), [self.value("project")]
        return everything_read(self.client, providers, consumers, projects, own=own)

    def _body(self, body: str, version: str) -> dict[str, Any]:
        if not body:
            return {}
        if body.startswith(("b'", 'b"')):
            return {"body": ast.literal_eval(body)}
        word, _, rest = body.partition(" ")
        if word == "CLAIM":
            return {"json": self._claim(rest, version)}
        if word == "CLAIMS":
            return {"json": self._claims(rest, version)}
        if word == "RESHAPE":
            inventories, _, claims = rest.partition(" >> ")
            sets = dict(map(self._set, inventories.split(";")))
            return {"json": {"inventories": sets, "allocations": self._claims(claims, version)}}
        return {"json": self.filled(_parsed(body))}

    def _claims(self, text: str, version: str) -> dict[str, object]:
        parts = (part.partition(": ") for part in text.split(";") if part.strip())
        return {self.value(name.strip()): self._claim(claim, version) for name, _, claim in parts}

    def _claim(self, text: str, version: str) -> object:
        claims: dict[str, dict[str, int]] = {}
        named, others = _named_amounts(text)
        for name, amounts in named.items():
            claims[self.value(name)] = {self.text(one): it for one, it in amounts.items()}
        body = claim_body(version, claims, project=self.value("project"))
        for member, value in self.filled(others).items():
            body[member] = LEFT_OUT if value == "absent" else value
        return {member: value for member, value in body.items() if value is not LEFT_OUT}

    def _set(self, text: str) -> tuple[str, object]:
        named, others = _named_amounts(text)
        ((name, totals),) = named.items()
        records = {self.text(one): {"total": total} for one, total in totals.items()}
        return self.value(name), self.filled({"seen": f"${name}", "inventories": records} | others)

    def _compare(self, step: Step, answer: Response, version: str) -> None:
        if step.status >= 400:
            begin = re.match(r"(\{.*?\})? ?", step.answer)
            assert begin is not None
            members, says = begin[1], self.text(step.answer[begin.end() :])
            parts = [part.strip() for part in says.split(_REST)]
            other = "Accept" in step.headers and "json" not in answer.headers["Content-Type"]
            if other or step.status == 401:
                assert answer.status == step.status, (answer.status, answer.text)
                assert all(part in answer.text for part in parts), answer.text
                return
            assert_refused(answer, step.status, *parts, code=step.code, version=version)
            if members is not None:
                due = _parsed(members)
                shown = {name: answer.error.get(name) for name in due}
                assert not self.difference(due, shown), answer.error
        else:
            assert answer.status == step.status, (answer.status, answer.text)
            if step.answer.startswith("PROVIDERS"):
                uuids = sorted(each["uuid"] for each in answer.json["resource_providers"])
                assert uuids == sorted(map(self.value, step.answer.split()[1:])), uuids
            elif step.answer.startswith("b'"):
                part = ast.literal_eval(self.text(step.answer))
                assert part in re.sub(rb"\s", b"", answer.body), answer.body
            elif step.answer:
                fault = self.difference(_parsed(step.answer), value := _value_of(answer))
                assert not fault, (fault, value)
            elif step.status == 204 or (step.status == 201 and step.method != "PATCH"):
                assert answer.body == b"" or step.path.startswith(_OWN), answer.body
        for name, expected in step.answer_headers.items():
            value = answer.headers.get(name)
            if expected is None:
                assert value is None, (name, value)
            else:
                parts = [re.escape(part) for part in self.text(expected).split(_REST)]
                assert value is not None, f"no {name}"
                assert re.fullmatch(".*".join(parts), value, re.DOTALL), (name, value)

    def difference(self, expected: Any, value: Any) -> str:
        """Where a value is not as expected; empty if it is."""
        if expected == _ANY:
            return ""
        if isinstance(expected, dict):
            return self._difference_of_objects(expected, value)
        if isinstance(expected, list):
            return self._difference_of_lists(expected, value)
        if isinstance(expected, str) and (match := re.fullmatch(r"\$((?!CUSTOM_)\w+)", expected)):
            self.meaning.setdefault(match[1], value)
        expected = self.filled(expected)
        same = expected == value and isinstance(expected, bool) == isinstance(value, bool)
        return "" if same else f"{value!r} instead of {expected!r}"

    def _difference_of_objects(self, expected: Mapping[Any, Any], value: Any) -> str:
        if not isinstance(value, dict):
            return f"{value!r} is no object"
        members = {self._key(key): item for key, item in expected.items() if key != _REST}
        if members.keys() - value.keys() or (_REST not in expected and members.keys() ^ value):
            return f"members {sorted(value)} instead of {sorted(members)}"
        for key, item in members.items():
            if fault := self.difference(self._seen(key, item), value[key]):
                return f"{key}: {fault}"
        return ""

    def _difference_of_lists(self, expected: list[Any], value: Any) -> str:
        items = [item for item in expected if item != _REST]
        if not isinstance(value, list) or (len(value) != len(items) and _REST not in expected):
            return f"{value!r} instead of {len(items)} items"
        left = list(value)
        for item in items:
            match = next((one for one in left if not self.difference(item, one)), self)
            if match is self:
                return f"{self.filled(item)!r} is not among {left!r}"
            left.remove(match)
        return ""

    def _key(self, key: object) -> str:
        return "resource_provider_generation" if key == "seen" else self.text(str(key))

    def _seen(self, key: str, value: Any) -> Any:
        named = re.fullmatch(r"\$\w+", value) if isinstance(value, str) else None
        return f"{value}.generation" if named and key == "resource_provider_generation" else value

    def filled(self, value: Any) -> Any:
        """A value of JSON with the names in it filled in."""
        if isinstance(value, dict):
            keyed = {self._key(key): item for key, item in value.items()}
            return {key: self.filled(self._seen(key, item)) for key, item in keyed.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, str):
            return value
        match = _NAME.fullmatch(value)
        return self._named(match) if match else self.text(value)

    def text(self, text: str) -> str:
        """A text with the names in it filled in."""
        repeated = _REPEATED.sub(lambda match: match[1] * int(match[2]), text)
        return _NAME.sub(lambda match: str(self._named(match)), repeated)

    def _named(self, match: re.Match[str]) -> Any:
        name = match[1] or match[2]
        if match[3] == ".generation":
            return generation(self.client, self.value(name))
        if match[3] == ".name":
            return f"{name}-{self.value(name)}"
        if match[3] in (".upper", ".lower"):
            return getattr(self.value(name), match[3][1:])()
        return self.value(name + (match[3] or ""))


def _rows(table: str, fleet: World) -> Iterator[Rule]:
    lines = [line for line in textwrap.dedent(table).splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if not line.startswith((" ", "#"))]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        sentence, _, named = lines[start].partition(" @")
        joined: list[str] = []
        margin = " " * (len(lines[start + 1]) - len(lines[start + 1].lstrip()))
        for line in lines[start + 1 : end]:
            if line.startswith(f"{margin} "):
                joined[-1] += f" {line.strip()}"
            elif not line.lstrip().startswith("#"):
                joined.append(line.strip())
        cases = [
            re.split(r" \|(?= |$)", case)
            for line in joined
            if line.startswith("|")
            for case in re.split(r" \|\|(?= )", line.lstrip("|"))
        ]
        yield Rule(
            sentence,
            tuple(_versions(named)),
            tuple(
                part
                for line in joined
                if not line.startswith("|")
                for part in ([line] if line.startswith((">", "<")) else line.split(" => "))
            ),
            tuple(tuple(map(str.strip, case)) for case in cases) or ((),),
            fleet,
        )


def _versions(text: str) -> Iterator[str | None]:
    for part in filter(None, re.split(r"[, ]+", text or "1.39")):
        first, dash, last = part.partition("-")
        if part == "none":
            yield None
        elif dash:
            every = versions(first, last or "1.39")
            yield from every if is_full() else dict.fromkeys((every[0], every[-1]))
        else:
            yield first


@cache
def _steps(lines: tuple[str, ...], case: tuple[str, ...]) -> tuple[Step, ...]:
    steps: list[Step] = []
    sent: dict[str, str | None] = {}
    lasting: dict[str, str | None] = {}
    request = ""
    cells = [*case, *[""] * 9]
    for raw in lines:
        line = re.sub(r"\$(\d)(?!\d)", lambda match: cells[int(match[1]) - 1], raw).strip()
        if line.startswith(("> ", ">> ")):
            mark, _, header = line.partition(" ")
            name, _, value = header.partition(":")
            sent[name] = value.strip() or None
            if mark == ">>":
                lasting[name] = sent[name]
        elif line.startswith("< "):
            name, _, value = line[2:].partition(":")
            steps[-1].answer_headers[name] = value.strip() or None
        elif match := _ANSWER.fullmatch(line):
            steps.append(_step(request, sent, match))
            sent = dict(lasting)
        else:
            request = line
    return tuple(steps)


def _step(request: str, sent: Mapping[str, str | None], answer: re.Match[str]) -> Step:
    match = _REQUEST.fullmatch(request)
    assert match is not None, f"no request: {request}"
    return Step(
        line=request,
        method=match[1],
        path=match[2],
        body=match[3] or "",
        versioned=match[4] is not None,
        version=None if match[4] == "none" else match[4],
        headers=sent,
        status=int(answer[1]),
        code=answer[2] or _code_of(match[2], int(answer[1])),
        answer=answer[3] or "",
        answer_headers={},
    )


def _named_amounts(text: str) -> tuple[dict[str, dict[str, int]], Any]:
    """Of `a X=1 Y=2 b Z=3 {c: 4}`: names with their amounts, and the members at the end."""
    words, brace, others = text.partition("{")
    named: dict[str, dict[str, int]] = {}
    for word in words.split():
        name, _, amount = word.partition("=")
        if amount:
            named[[*named][-1]][name] = int(amount)
        else:
            named[name] = {}
    return named, _parsed(brace + others) if brace else {}


def _value_of(answer: Response) -> Any:
    if answer.headers.get("content-type") == "application/jsonl":
        return [loads(line) for line in answer.body.splitlines()]
    return answer.json


def _code_of(path: str, status: int) -> str:
    """That of most refusals of a status."""
    if not path.startswith(_OWN):
        return UNDEFINED
    return {400: "berth.request.invalid", 404: "berth.not_found"}.get(status, _OWN_UNDEFINED)


@cache
def _parsed(text: str) -> Any:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def one_for_each_route(rows: Mapping[pytest.Item, Rule], rng: Random) -> set[pytest.Item]:
    """Of the tests of some rules, one for each route that they ask."""
    by_route: dict[tuple[str, str], list[pytest.Item]] = {}
    for item, rule in rows.items():
        for route in rule.routes:
            by_route.setdefault(route, []).append(item)
    return {rng.choice(some) for _, some in sorted(by_route.items())}
