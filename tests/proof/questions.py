# SPDX-License-Identifier: Apache-2.0
"""Reads of every kind with the names of `tests.proof.names`, and the differences that two correct
responses may have.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from tests.proof.names import (
    AGGREGATES,
    CLASSES,
    CONSUMER_TYPES,
    CONSUMERS,
    PROJECTS,
    PROVIDER_NAMES,
    PROVIDERS,
    SHARES,
    STANDARD,
    TRAITS,
    USERS,
)
from tests.proof.wire import Raw

#: Versions at which answers or queries have another form.
_OF_CANDIDATES: Final = (10, 12, 17, 22, 25, 27, 29, 31, 32, 34, 35, 36, *(39,) * 12)
_OF_PROVIDERS: Final = (0, 3, 4, 14, 18, 20, 22, 24, 32, *(39,) * 6)

#: Of an answer's headers, those that say what was answered.
_HEADERS: Final = ("allow", "cache-control", "content-type", "openstack-api-version", "vary")
_REQUEST_ID: Final = re.compile(rb"req-[0-9a-f-]{36}")


class Question(NamedTuple):
    """One GET."""

    path: str
    version: str

    @property
    def is_limited(self) -> bool:
        """Whether it leaves open which of several candidates are returned."""
        return "limit=" in self.path

    def without_limit(self) -> Question:
        """The query that returns everything that this one may return."""
        return self._replace(path=re.sub("&limit=[0-9]+", "", self.path))


def drawn(rng: random.Random) -> list[Question]:
    """Some hundred queries, which a run repeats after every round."""
    candidates = [
        Question(f"/allocation_candidates?{query}", f"1.{minor}")
        for minor in rng.choices(_OF_CANDIDATES, k=150)
        for query in [_candidates_query(rng, minor)]
    ]
    lists = [
        Question(f"/resource_providers{_providers_query(rng, minor)}", f"1.{minor}")
        for minor in rng.choices(_OF_PROVIDERS, k=50)
    ]
    return [*candidates, *lists, *_plain(rng)]


def _plain(rng: random.Random) -> Iterator[Question]:
    """Queries without filters: single objects and lists."""
    for uuid in PROVIDERS:
        path = f"/resource_providers/{uuid}"
        for what in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"):
            yield Question(
                path + what,
                rng.choice(("1.39", "1.39", "1.6", "1.19", "1.28", "1.0", "1.1", "1.11", "1.14")),
            )
        yield Question(f"{path}/inventories/{rng.choice((*CLASSES, *STANDARD))}", "1.39")
    for consumer in CONSUMERS:
        for minor in (39, 37, 28, 12, 0):
            yield Question(f"/allocations/{consumer}", f"1.{minor}")
    for name in CLASSES:
        yield Question(f"/resource_classes/{name}", "1.39")
    for name in TRAITS:
        yield Question(f"/traits/{name}", "1.39")
    for query in ("", "?name=startswith:CUSTOM_F", f"?name=in:{','.join(TRAITS)}"):
        yield Question(f"/traits{query}", "1.39")
    for associated in ("true", "false"):
        yield Question(f"/traits?associated={associated}", "1.39")
    yield Question("/resource_classes", "1.39")
    for project in PROJECTS:
        for minor in (9, 37, 38, 39):
            yield Question(f"/usages?project_id={project}", f"1.{minor}")
        yield Question(f"/usages?project_id={project}&user_id={rng.choice(USERS)}", "1.39")
        for kind in (*CONSUMER_TYPES, "all", "unknown"):
            yield Question(f"/usages?project_id={project}&consumer_type={kind}", "1.39")


def _candidates_query(rng: random.Random, minor: int) -> str:
    suffixes = ["", "1", "2"] if minor >= 25 else [""]
    chosen = suffixes[: rng.choice((1, 1, 1, 2, 3))]
    pairs: list[str] = []
    for suffix in chosen:
        pairs += _group(rng, minor, suffix)
    if len(chosen) > 1:
        pairs.append(f"group_policy={rng.choice(('none', 'isolate'))}")
    if minor >= 36 and len(chosen) > 2 and rng.random() < 0.5:
        pairs.append("same_subtree=1,2")
    if minor >= 35 and rng.random() < 0.2:
        pairs.append(f"root_required={rng.choice(('', '!'))}{rng.choice(TRAITS)}")
    if minor >= 16 and rng.random() < 0.2:
        pairs.append(f"limit={rng.randint(1, 4)}")
    return "&".join(pairs)


def _group(rng: random.Random, minor: int, suffix: str) -> Iterator[str]:
    classes = rng.sample((*CLASSES, "VCPU", "VCPU", "DISK_GB"), rng.choice((1, 1, 2)))
    yield f"resources{suffix}=" + ",".join(f"{name}:{rng.randint(1, 3)}" for name in {*classes})
    if minor >= 17 and rng.random() < 0.4:
        yield f"required{suffix}={_traits(rng, minor)}"
    if minor >= 21 and rng.random() < 0.4:
        yield f"member_of{suffix}={_aggregates(rng, minor)}"
    if minor >= 31 and rng.random() < 0.15:
        yield f"in_tree{suffix}={rng.choice(PROVIDERS)}"


def _providers_query(rng: random.Random, minor: int) -> str:
    kinds: list[str] = [f"name={rng.choice(PROVIDER_NAMES)}", f"uuid={rng.choice(PROVIDERS)}"]
    if minor >= 3:
        kinds.append(f"member_of={_aggregates(rng, minor)}")
    if minor >= 4:
        kinds.append(f"resources={rng.choice((*CLASSES, *STANDARD))}:{rng.randint(1, 4)}")
    if minor >= 14:
        kinds.append(f"in_tree={rng.choice(PROVIDERS)}")
    if minor >= 18:
        kinds += [f"required={_traits(rng, minor)}"] * 3
    chosen = rng.sample(kinds, rng.choice((0, 1, 1, 1, 2)))
    return "?" + "&".join(chosen) if chosen else ""


def _traits(rng: random.Random, minor: int) -> str:
    one, other = rng.sample((*TRAITS, SHARES), 2)
    if minor >= 39 and rng.random() < 0.3:
        return f"in:{one},{other}"
    if minor >= 22 and rng.random() < 0.4:
        return f"!{one}"
    return one


def _aggregates(rng: random.Random, minor: int) -> str:
    one, other = rng.sample(AGGREGATES, 2)
    sign = "!" if minor >= 32 and rng.random() < 0.3 else ""
    return f"{sign}in:{one},{other}" if rng.random() < 0.3 else f"{sign}{one}"


class Told(NamedTuple):
    """A response in a form that is equal for two correct responses to one query.

    Attributes:
        body: every byte, except the id of the request. Candidates and their summaries have no
            order, so each is counted by its text.
        headers: those that describe the content.
        modified: `Last-Modified`, or "now" if it is the time of the response itself.
    """

    status: int
    body: bytes | tuple[Counter[str], Mapping[str, str], int]
    headers: Mapping[str, str]
    modified: str | None


def told(question: Question, answer: Raw, asked_since: float) -> Told:
    """The comparable form of a response.

    Args:
        asked_since: when the first query of the round was sent, in seconds since 1970.
    """
    body: bytes | tuple[Counter[str], Mapping[str, str], int]
    body = _REQUEST_ID.sub(b"req", answer.body)
    if answer.status == 200 and question.path.startswith("/allocation_candidates"):
        body = _unordered(body)
    modified = answer.headers.get("last-modified")
    return Told(
        answer.status,
        body,
        {name: answer.headers[name] for name in _HEADERS if name in answer.headers},
        "now" if modified and _seconds(modified) >= int(asked_since) else modified,
    )


def _seconds(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()


def _unordered(body: bytes) -> tuple[Counter[str], Mapping[str, str], int]:
    parsed = json.loads(body)
    # Nothing was lost by parsing: the texts below are those that came.
    assert json.dumps(parsed).encode() == body
    return (
        Counter(json.dumps(each) for each in parsed["allocation_requests"]),
        {uuid: json.dumps(each) for uuid, each in parsed["provider_summaries"].items()},
        len(body),
    )


def finds_something(one: Told) -> bool:
    """Whether a response has more than an error or an empty list."""
    if isinstance(one.body, tuple):
        return bool(one.body[0])
    return one.status == 200 and b"[]" not in one.body


def differences(
    questions: Sequence[Question], lived: Sequence[Told], fresh: Mapping[Question, Told]
) -> Iterator[str]:
    """The queries to which a worker and a new process give different responses."""
    for question, one in zip(questions, lived, strict=True):
        other = fresh[question]
        if question.is_limited and one.status == other.status == 200:
            is_same = _is_part_of(one, fresh[question.without_limit()], other)
        else:
            is_same = one == other
        if not is_same:
            yield f"{question.version} {question.path}\n  lived: {one}\n  fresh: {other}"


def _is_part_of(one: Told, every: Told, other: Told) -> bool:
    """Whether a response has as many candidates as another, out of all possible ones."""
    assert isinstance(one.body, tuple)
    assert isinstance(other.body, tuple)
    assert isinstance(every.body, tuple)
    return (
        one.body[0] <= every.body[0]
        and one.body[0].total() == other.body[0].total()
        and one.body[1].items() <= every.body[1].items()
        and (one.headers, one.modified) == (other.headers, other.modified)
    )
