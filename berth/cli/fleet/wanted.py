# SPDX-License-Identifier: Apache-2.0
"""What is wanted: the options of every question, as the body of a request.

Source: spec/beyond.md 2.2 and 4.4.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TextIO

import click

from berth.cli.fleet.completing import amounts as classes_for_amounts
from berth.cli.fleet.completing import (
    class_names,
    drain_names,
    flavor_names,
    provider_names,
    trait_names,
)
from berth.cli.fleet.filters import amounts_of
from berth.pasted import NotReadable, request_in
from berth.pasted.command import items_of as pasted_items

#: What no amount and no flavor has, but what people paste.
_PASTED: Final = re.compile(r"[&?%\s{]|=.*[:,!]|resources[\w-]*=|required[\w-]*=|member_of[\w-]*=")


def _several(
    option: str, metavar: str, text: str, complete: Callable[..., list[str]] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(option, multiple=True, metavar=metavar, help=text, shell_complete=complete)


_Options = tuple[Callable[[Callable[..., None]], Callable[..., None]], ...]


def _flavors_and_amounts(
    context: click.Context, parameter: click.Parameter, prefix: str
) -> list[str]:
    """The flavors and the resource classes that start with a prefix."""
    return [
        *flavor_names(context, parameter, prefix),
        *classes_for_amounts(context, parameter, prefix),
    ]


_AMOUNTS: Final = click.argument(
    "amounts", metavar="[CLASS=AMOUNT]...", nargs=-1, shell_complete=classes_for_amounts
)
_FLAVOR_OR_AMOUNTS: Final = click.argument(
    "amounts", metavar="[FLAVOR|CLASS=AMOUNT]...", nargs=-1, shell_complete=_flavors_and_amounts
)
#: What a request consists of, beside amounts.
_OF_REQUEST: Final[_Options] = (
    click.option(
        "--request",
        metavar="FILE",
        type=click.File(),
        help="Read the request, or the whole body that has it, from this JSON file, or from "
        "standard input (-).",
    ),
    _several(
        "--required",
        "TRAITS",
        "Traits: A,B for both, !A for not, in:A,B for one of them.",
        trait_names,
    ),
    _several("--member-of", "AGGREGATES", "Aggregates by UUID, name or label, in the same form."),
    _several("--in-tree", "PROVIDER", "In the tree that contains it.", provider_names),
    _several("--under", "PROVIDER", "From it, or from below it.", provider_names),
    _several("--not-under", "PROVIDER", "Not from it, nor from below it.", provider_names),
    _several(
        "--split",
        "CLASS[:parts=N,min=M,step=S]",
        "Take the amount of this class from up to N providers of a host (2), at least M from each "
        "(1), in multiples of S (1).",
        class_names,
    ),
    _several(
        "--group",
        "TEXT",
        "A group that one provider serves: its name, CLASS=AMOUNT..., and its conditions as "
        "required=, member_of=, in_tree=, under=, not_under= and split=.",
    ),
    _several("--host-required", "TRAITS", "Traits of the host itself.", trait_names),
    _several("--host-anywhere", "TRAITS", "Traits anywhere in the host's tree.", trait_names),
    _several("--host-member-of", "AGGREGATES", "Aggregates of the host itself."),
    _several("--host-in", "PROVIDER", "Only these hosts.", provider_names),
    _several("--host-not-in", "PROVIDER", "Not these hosts.", provider_names),
    _several(
        "--together",
        "A,B@LEVEL",
        "Groups on the same LEVEL: provider, tree, subtree, or a trait of the nearest provider "
        "above that has it.",
    ),
    _several("--apart", "A,B@LEVEL", "Groups in different ones."),
    _several(
        "--tolerate",
        "DRAIN",
        "Also use what this drain excludes; * is any drain.",
        drain_names,
    ),
)
_FLAVOR: Final = click.option(
    "--flavor",
    metavar="NAME",
    shell_complete=flavor_names,
    help="What this flavor asks for; only --host-... and --tolerate may add to it.",
)
_OF_SCENARIO: Final[_Options] = (
    click.option("--nothing-used", is_flag=True, help="Ask as if nothing were used."),
    _several("--drain", "PROVIDER", "Ask as if this provider were drained.", provider_names),
    _several("--undrain", "DRAIN", "Ask as if this drain were deleted.", drain_names),
    _several("--without-host", "PROVIDER", "Ask as if this host were gone.", provider_names),
    _several("--without-consumer", "UUID", "Ask as if this consumer were gone."),
    _several(
        "--add-host",
        "PROVIDER[*N]",
        "Ask as if there were another host like this one, or N more.",
        provider_names,
    ),
    _several(
        "--allocation-ratio",
        "CLASS=RATIO[@AGGREGATES]",
        "Ask as if a class had this allocation ratio, on all hosts or on those in AGGREGATES.",
        classes_for_amounts,
    ),
)

#: What the fields of these options begin with.
_ASSUMING: Final = ("nothing", "drain", "undrain", "without", "add", "allocation")
#: What may be given with a query: what the fleet is assumed to be, and tolerated drains.
_BESIDE_A_QUERY: Final = (
    "amounts",
    "tolerate",
    *("nothing_used", "drain", "undrain"),
    *("without_host", "without_consumer", "add_host", "allocation_ratio"),
)
#: A provider, and how many hosts like it.
_ADDED: Final = re.compile(r"(?P<like>[^*].*?)(?:\*(?P<count>[0-9]+))?")

#: A class, its allocation ratio, and on which hosts.
_RATIO: Final = re.compile(
    r"(?P<resource_class>[A-Z0-9_]+)=(?P<ratio>[0-9]+(\.[0-9]+)?)(@(?P<member_of>.+))?"
)

#: A class that may be split, and how.
_SPLIT: Final = re.compile(
    r"(?P<resource_class>[A-Z0-9_]+)(:(?P<how>(parts|min|step)=[0-9]+(,(parts|min|step)=[0-9]+)*))?"
)

#: The members of a group, and whether each is a list of conditions or of references.
_CONDITIONS: Final = ("required", "member_of")
_REFERENCES: Final = ("in_tree", "under", "not_under")

#: The options that a flavor has itself.
_OF_FLAVOR: Final = (
    "amounts",
    *_CONDITIONS,
    *_REFERENCES,
    "split",
    "group",
    "together",
    "apart",
)


@dataclass(frozen=True, slots=True)
class WantedRequest:
    """The options of a request, as they were typed."""

    amounts: Sequence[str]
    request: TextIO | None
    required: Sequence[str]
    member_of: Sequence[str]
    in_tree: Sequence[str]
    under: Sequence[str]
    not_under: Sequence[str]
    split: Sequence[str]
    group: Sequence[str]
    host_required: Sequence[str]
    host_anywhere: Sequence[str]
    host_member_of: Sequence[str]
    host_in: Sequence[str]
    host_not_in: Sequence[str]
    together: Sequence[str]
    apart: Sequence[str]
    tolerate: Sequence[str]

    def body(self) -> dict[str, Any]:
        """The member `request`, and of a file all others.

        Raises:
            UsageError: nothing is wanted, or an option does not have its form.
        """
        if self.request:
            return self._body_of_file()
        return {"request": self._pasted() or self._request()}

    def _pasted(self) -> dict[str, Any] | None:
        """The request in what was pasted instead of amounts; also without quotes around it."""
        if not any(map(_PASTED.search, self.amounts)):
            return None
        # What stands beside it would be lost.
        for field in fields(self):
            if field.name not in _BESIDE_A_QUERY and getattr(self, field.name):
                option = f"--{field.name.replace('_', '-')}"
                pasted = "CLASS=AMOUNT" if field.name == "flavor" else "a query"
                raise click.UsageError(f"{pasted} and {option} exclude each other")
        try:
            return {**request_in(" ".join(self.amounts)), **self._restrictions()}
        except NotReadable as error:
            raise click.UsageError(str(error)) from error

    def _body_of_file(self) -> dict[str, Any]:
        assert self.request is not None, "there is a file"
        self._exclude(
            "request",
            (
                field.name
                for field in fields(self)
                if not field.name.startswith(("request", *_ASSUMING))
            ),
        )
        body = read_json(self.request)
        return body if "request" in body else {"request": body}

    def _exclude(self, option: str, others: Iterable[str]) -> None:
        """Refuse the other options beside an option."""
        for name in others:
            if getattr(self, name):
                typed = "CLASS=AMOUNT" if name == "amounts" else f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{typed} and --{option} exclude each other")

    def _request(self) -> dict[str, Any]:
        request: dict[str, Any] = {"groups": self._groups(), **self._restrictions()}
        for name, texts in ("together", self.together), ("apart", self.apart):
            if texts:
                request[name] = [_relation(name, text) for text in texts]
        return request

    def _restrictions(self) -> dict[str, Any]:
        """What may stand beside a flavor."""
        tolerated = "*" if "*" in self.tolerate else list(self.tolerate)
        return {
            **({"host": host} if (host := self._host()) else {}),
            **({"tolerate": tolerated} if tolerated else {}),
        }

    def _groups(self) -> dict[str, Any]:
        unnamed = _group(
            self.amounts,
            {
                "required": self.required,
                "member_of": self.member_of,
                "in_tree": self.in_tree,
                "under": self.under,
                "not_under": self.not_under,
                "split": self.split,
            },
        )
        groups = {"": unnamed} if unnamed else {}
        for text in self.group:
            name, group = _named_group(text)
            groups[name] = group
        if not groups:
            raise click.UsageError("nothing is requested: give CLASS=AMOUNT, as in VCPU=4")
        return groups

    def _host(self) -> dict[str, Any]:
        return {
            **items_of("required", self.host_required),
            **items_of("anywhere", self.host_anywhere),
            **items_of("member_of", self.host_member_of),
            **({"in": list(self.host_in)} if self.host_in else {}),
            **({"not_in": list(self.host_not_in)} if self.host_not_in else {}),
        }


@dataclass(frozen=True, slots=True)
class Wanted(WantedRequest):
    """The options of a question, as they were typed."""

    flavor: str | None
    nothing_used: bool
    drain: Sequence[str]
    undrain: Sequence[str]
    without_host: Sequence[str]
    without_consumer: Sequence[str]
    add_host: Sequence[str]
    allocation_ratio: Sequence[str]

    @property
    def is_empty(self) -> bool:
        """Whether no option asks for anything, whatever they assume of the fleet."""
        return not any(
            getattr(self, field.name)
            for field in fields(self)
            if not field.name.startswith(_ASSUMING)
        )

    @property
    def has_request(self) -> bool:
        """Whether anything is asked for but conditions on hosts, and drains to tolerate."""
        return any(getattr(self, name) for name in (*_OF_FLAVOR, "flavor", "request"))

    def conditions(self) -> dict[str, Any]:
        """The members `host`, `tolerate` and `what_if` of a body without a request."""
        what_if = self.what_if()
        return {**self._restrictions(), **({"what_if": what_if} if what_if else {})}

    def body(self) -> dict[str, Any]:
        """The members `request` and `what_if` of a question.

        Raises:
            UsageError: nothing is wanted, or an option does not have its form.
        """
        # `slots` makes another class, which `super()` without arguments does not know.
        body = WantedRequest.body(self)
        if what_if := self.what_if():
            body["what_if"] = {**body.get("what_if", {}), **what_if}
        return body

    def _request(self) -> dict[str, Any]:
        named = [each for each in self.amounts if "=" not in each]
        if len(named) > 1 or (named and self.flavor):
            raise click.UsageError(f"a request has one flavor: remove {named[-1]}")
        if named and len(self.amounts) > 1:
            raise click.UsageError(
                f"{named[0]} is not CLASS=AMOUNT, as in VCPU=4, and a flavor excludes amounts"
            )
        if named:
            return replace(self, flavor=named[0], amounts=())._request()
        if not self.flavor:
            return WantedRequest._request(self)
        self._exclude("flavor", _OF_FLAVOR)
        return {"flavor": self.flavor, **self._restrictions()}

    def what_if(self) -> dict[str, Any]:
        """The assumptions."""
        return {
            **({"nothing_used": True} if self.nothing_used else {}),
            **({"drain": list(self.drain)} if self.drain else {}),
            **({"undrain": list(self.undrain)} if self.undrain else {}),
            **({"without_hosts": list(self.without_host)} if self.without_host else {}),
            **({"without_consumers": list(self.without_consumer)} if self.without_consumer else {}),
            **({"add_hosts": list(map(_added, self.add_host))} if self.add_host else {}),
            **(
                {"allocation_ratio": list(map(_ratio, self.allocation_ratio))}
                if self.allocation_ratio
                else {}
            ),
        }


def wanting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a question; the command gets a `Wanted` as `wanted`."""
    return _taking(Wanted, (_FLAVOR_OR_AMOUNTS, *_OF_REQUEST, _FLAVOR, *_OF_SCENARIO), command)


def wanting_request(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a request; the command gets a `WantedRequest` as `wanted`."""
    return _taking(WantedRequest, (_AMOUNTS, *_OF_REQUEST), command)


def _taking(
    kind: type[WantedRequest], options: _Options, command: Callable[..., None]
) -> Callable[..., None]:
    names = [field.name for field in fields(kind)]

    def with_wanted(**typed: Any) -> None:
        wanted = kind(**{name: typed.pop(name) for name in names})
        command(wanted=wanted, **typed)

    functools.update_wrapper(with_wanted, command)
    decorated: Callable[..., None] = with_wanted
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def read_json(file: TextIO) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        UsageError: it is none.
    """
    try:
        body = json.load(file)
    except ValueError as error:
        raise click.UsageError(f"{file.name} is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise click.UsageError(f"{file.name} is not a JSON object")
    return body


def _group(amounts: Sequence[str], texts: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    group: dict[str, Any] = {"resources": amounts_of(amounts)} if amounts else {}
    for name in _CONDITIONS:
        group |= items_of(name, texts.get(name, ()))
    for name in _REFERENCES:
        if references := list(texts.get(name, ())):
            group[name] = references
    if splits := dict(map(_split, texts.get("split", ()))):
        group["split"] = splits
    return group


def _split(text: str) -> tuple[str, dict[str, int]]:
    """A class to split and how, as it is typed: `VCPU`, or `VCPU:parts=4,min=2`."""
    match = _SPLIT.fullmatch(text)
    if match is None:
        raise click.UsageError(
            f"--split {text} is not CLASS or CLASS:parts=N,min=M,step=S, as in VCPU:parts=4"
        )
    pairs = (pair.partition("=") for pair in filter(None, (match["how"] or "").split(",")))
    return match["resource_class"], {name: int(number) for name, _, number in pairs}


def _named_group(text: str) -> tuple[str, dict[str, Any]]:
    """A group as it is typed: `_GPU VGPU=1 required=CUSTOM_A100`."""
    name, *words = shlex.split(text) or [""]
    texts: dict[str, list[str]] = {}
    amounts = []
    for word in words:
        key, _, value = word.partition("=")
        if key in (*_CONDITIONS, *_REFERENCES, "split"):
            texts.setdefault(key, []).append(value)
        else:
            amounts.append(word)
    if not name or "=" in name:
        raise click.UsageError(
            f"--group '{text}' begins with the group's name, as in '_GPU VGPU=1'"
        )
    return name, _group(amounts, texts)


def items_of(member: str, texts: Iterable[str]) -> dict[str, Any]:
    """A member with conditions in the grammar of requests: `A`, `!A`, or a list of which one is
    enough."""
    items = pasted_items(texts)
    return {member: items} if items else {}


def _relation(name: str, text: str) -> dict[str, Any]:
    groups, at, level = text.rpartition("@")
    if not at:
        raise click.UsageError(f"--{name} {text} is not A,B@LEVEL, as in _GPU0,_GPU1@HW_NUMA_ROOT")
    return {"groups": groups.split(","), "at": level}


def _added(text: str) -> dict[str, Any]:
    """Hosts to add as they are typed: `cn3*10`."""
    match = _ADDED.fullmatch(text)
    if match is None or match["count"] == "0":
        raise click.UsageError(f"--add-host '{text}' is not PROVIDER or PROVIDER*N, as in 'cn3*10'")
    return {"like": match["like"], "count": int(match["count"] or 1)}


def _ratio(text: str) -> dict[str, Any]:
    """An allocation ratio to assume, as it is typed: `VCPU=8@zone=z1`."""
    match = _RATIO.fullmatch(text)
    if match is None:
        raise click.UsageError(
            f"--allocation-ratio {text} is not CLASS=RATIO or CLASS=RATIO@AGGREGATES, as in"
            " VCPU=8@zone=z1"
        )
    return {
        "resource_class": match["resource_class"],
        "ratio": float(match["ratio"]),
        **items_of("member_of", [match["member_of"]] if match["member_of"] else ()),
    }
