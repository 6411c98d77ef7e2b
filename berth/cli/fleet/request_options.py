# SPDX-License-Identifier: Apache-2.0
"""The options of a request and of a question about it, as the body of a request to the API.

One table says of each option what it is called, and where the body has what it says.
Source: spec/beyond.md 2.2, 2.7 and 4.4.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TextIO

import click

from berth.cli.completing import flavor_names
from berth.cli.options import Decorator, amounts_of, argument, flag, gathering, match_of, option
from berth.pasted import NotReadable, request_in
from berth.pasted.command import items_of

#: What no amount and no flavor has, but what people paste.
_PASTED: Final = re.compile(r"[&?%\s{]|=.*[:,!]|resources[\w-]*=|required[\w-]*=|member_of[\w-]*=")

#: A provider, and how many hosts like it, which are not none.
_ADDED: Final = re.compile(r"(?!.*\*0$)(?P<like>[^*].*?)(?:\*(?P<count>[0-9]+))?")

#: A class, its allocation ratio, and on which hosts.
_RATIO: Final = re.compile(
    r"(?P<resource_class>[A-Z0-9_]+)=(?P<ratio>[0-9]+(\.[0-9]+)?)(@(?P<member_of>.+))?"
)

#: A flavor to leave room for, and its weight.
_PRESERVED: Final = re.compile(r"(?P<flavor>[^=]+)(?:=(?P<weight>[0-9]+(\.[0-9]+)?))?")
#: Traits, and the weight of a preference.
_PREFERRED: Final = re.compile(r"(?P<traits>[^=]+)(?:=(?P<weight>-?[0-9]+))?")
#: Groups, and the level at which they are related.
_RELATED: Final = re.compile(r"(?P<groups>.*)@(?P<at>.*)", re.DOTALL)
#: A class that may be split, and how.
_SPLIT: Final = re.compile(
    r"(?P<resource_class>[A-Z0-9_]+)(:(?P<how>(parts|min|step)=[0-9]+(,(parts|min|step)=[0-9]+)*))?"
)


# --- Values as they are typed ---------------------------------------------------------------------


def _each(read: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
    """Read each text by itself."""
    return lambda texts: list(map(read, texts))


def _splits(texts: Iterable[str]) -> dict[str, dict[str, int]]:
    return dict(map(_split, texts))


def _split(text: str) -> tuple[str, dict[str, int]]:
    """A class to split and how, as it is typed: `VCPU`, or `VCPU:parts=4,min=2`."""
    match = match_of(
        _SPLIT, text, "--split {} is not CLASS or CLASS:parts=N,min=M,step=S, as in VCPU:parts=4"
    )
    pairs = (pair.partition("=") for pair in filter(None, (match["how"] or "").split(",")))
    return match["resource_class"], {name: int(number) for name, _, number in pairs}


def _relation(name: str, text: str) -> dict[str, Any]:
    sentence = f"--{name} {{}} is not A,B@LEVEL, as in _GPU0,_GPU1@HW_NUMA_ROOT"
    match = match_of(_RELATED, text, sentence)
    return {"groups": match["groups"].split(","), "at": match["at"]}


def _tolerated(texts: Sequence[str]) -> str | list[str]:
    return "*" if "*" in texts else list(texts)


def _added(text: str) -> dict[str, Any]:
    """Hosts to add as they are typed: `cn3*10`."""
    match = match_of(_ADDED, text, "--add-host '{}' is not PROVIDER or PROVIDER*N, as in 'cn3*10'")
    return {"like": match["like"], "count": int(match["count"] or 1)}


def _ratio(text: str) -> dict[str, Any]:
    """An allocation ratio to assume, as it is typed: `VCPU=8@zone=z1`."""
    match = match_of(
        _RATIO,
        text,
        "--allocation-ratio {} is not CLASS=RATIO or CLASS=RATIO@AGGREGATES, as in VCPU=8@zone=z1",
    )
    member_of = {"member_of": items_of([match["member_of"]])} if match["member_of"] else {}
    return {
        "resource_class": match["resource_class"],
        "ratio": float(match["ratio"]),
        **member_of,
    }


def _preserved(text: str) -> tuple[str, float]:
    match = match_of(
        _PRESERVED, text, "--preserve {} is not FLAVOR or FLAVOR=WEIGHT, as in gpu.a100=5"
    )
    return match["flavor"], float(match["weight"] or 1)


def _preference(text: str) -> dict[str, Any]:
    match = match_of(
        _PREFERRED, text, "--prefer {} is not TRAITS or TRAITS=WEIGHT, as in STORAGE_DISK_SSD=5"
    )
    return {"weight": int(match["weight"] or 1), "required": items_of([match["traits"]])}


# --- The options ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemberOption:
    """An option that may be repeated, and the member of a body that it says.

    Attributes:
        usage: see `option`.
        text: the help.
        member: of the part of the body that the option belongs to.
        read: the member's value, from what was typed; empty: there is no such member.
    """

    usage: str
    text: str
    member: str
    read: Callable[[Sequence[str]], Any] = list

    @property
    def parameter(self) -> str:
        """Its name among the parameters of a command."""
        return self.usage.partition(" ")[0].removeprefix("--").replace("-", "_")

    def decorator(self) -> Decorator:
        """The option for click."""
        return option(f"{self.usage}...", self.text)


_AMOUNTS: Final[Decorator] = argument("amounts", "[CLASS=AMOUNT]...")
_FLAVOR_OR_AMOUNTS: Final[Decorator] = argument("amounts", "[FLAVOR|CLASS=AMOUNT]...")
_REQUEST_FILE: Final[Decorator] = option(
    "--request FILE",
    "Read the request, or a complete request body, from this JSON file, or from "
    "standard input (-).",
    type=click.File(),
)
#: The conditions of the group without a name; a text of `--group` has them by their members.
_OF_GROUP: Final = (
    MemberOption(
        "--required TRAITS",
        "Traits: A,B for both, !A for not, in:A,B for one of them.",
        "required",
        items_of,
    ),
    MemberOption(
        "--member-of AGGREGATES",
        "Aggregates by UUID, name or label, in the same form.",
        "member_of",
        items_of,
    ),
    MemberOption("--in-tree PROVIDER", "In the tree that contains it.", "in_tree"),
    MemberOption("--under PROVIDER", "From it, or from below it.", "under"),
    MemberOption("--not-under PROVIDER", "Neither this provider nor any below it.", "not_under"),
    MemberOption(
        "--split CLASS[:parts=N,min=M,step=S]",
        "Take the amount of this class from up to N providers of a host (2), at least M from each "
        "(1), in multiples of S (1).",
        "split",
        _splits,
    ),
)
_GROUP: Final[Decorator] = option(
    "--group TEXT...",
    "A group that one provider serves: its name, CLASS=AMOUNT..., and its conditions as "
    "required=, member_of=, in_tree=, under=, not_under= and split=.",
)
_OF_HOST: Final = (
    MemberOption("--host-required TRAITS", "Traits of the host itself.", "required", items_of),
    MemberOption(
        "--host-anywhere TRAITS", "Traits anywhere in the host's tree.", "anywhere", items_of
    ),
    MemberOption(
        "--host-member-of AGGREGATES", "Aggregates of the host itself.", "member_of", items_of
    ),
    MemberOption("--host-in PROVIDER", "Only these hosts.", "in"),
    MemberOption("--host-not-in PROVIDER", "Not these hosts.", "not_in"),
)
_RELATIONS: Final = (
    MemberOption(
        "--together A,B@LEVEL",
        "Groups on the same LEVEL: provider, tree, subtree, or a trait of the nearest provider "
        "above that has it.",
        "together",
        _each(partial(_relation, "together")),
    ),
    MemberOption(
        "--apart A,B@LEVEL",
        "Groups in different ones.",
        "apart",
        _each(partial(_relation, "apart")),
    ),
)
_TOLERATED: Final = (
    MemberOption(
        "--tolerate DRAIN",
        "Also use what this drain excludes; * is any drain.",
        "tolerate",
        _tolerated,
    ),
)
_FLAVOR: Final[Decorator] = option(
    "--flavor NAME",
    "What this flavor asks for; only --host-... and --tolerate may add to it.",
    shell_complete=flavor_names,
)
_NOTHING_USED: Final[Decorator] = flag("--nothing-used", "Ask as if nothing were used.")
#: What to assume of the fleet, besides that nothing is used.
_OF_SCENARIO: Final = (
    MemberOption("--drain PROVIDER", "Ask as if this provider were drained.", "drain"),
    MemberOption("--undrain DRAIN", "Ask as if this drain were deleted.", "undrain"),
    MemberOption("--without-host PROVIDER", "Ask as if this host were gone.", "without_hosts"),
    MemberOption(
        "--without-consumer UUID", "Ask as if this consumer were gone.", "without_consumers"
    ),
    MemberOption(
        "--add-host PROVIDER[*N]",
        "Ask as if there were another host like this one, or N more.",
        "add_hosts",
        _each(_added),
    ),
    MemberOption(
        "--allocation-ratio CLASS=RATIO[@AGGREGATES]",
        "Ask as if a class had this allocation ratio, on all hosts or on those in AGGREGATES.",
        "allocation_ratio",
        _each(_ratio),
    ),
)


def without_none(**members: Any) -> dict[str, Any]:
    """The members of a body that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _members(options: Iterable[MemberOption], typed: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What some options say, as members of their part of a body.

    Raises:
        UsageError: one does not have its form.
    """
    said = {option.member: option.read(typed[option.parameter]) for option in options}
    return {member: value for member, value in said.items() if value}


def _parameters(options: Iterable[MemberOption]) -> list[str]:
    return [option.parameter for option in options]


def gathering_members(argument: str, *options: MemberOption) -> Decorator:
    """Add options to a command, which gets what they say as members of a body."""
    return gathering(
        argument,
        lambda **typed: _members(options, typed),
        _decorators(*options),
        _parameters(options),
    )


#: The parameters that a flavor has itself.
_OF_FLAVOR: Final = (
    "amounts",
    *_parameters(_OF_GROUP),
    "group",
    *_parameters(_RELATIONS),
)
_ASSUMING: Final = ("nothing_used", *_parameters(_OF_SCENARIO))

#: The parameters of a request, and those of a question, in the order of their help.
_OF_REQUEST: Final = (
    *("amounts", "request"),
    *_parameters(_OF_GROUP),
    "group",
    *_parameters((*_OF_HOST, *_RELATIONS, *_TOLERATED)),
)
_OF_QUESTION: Final = (*_OF_REQUEST, "flavor", *_ASSUMING)


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The options of a question, as they were typed.

    Attributes:
        typed: what was typed, by the names of the parameters.
    """

    typed: Mapping[str, Any]

    @property
    def amounts(self) -> Sequence[str]:
        """The arguments: a flavor or amounts, or what was pasted."""
        amounts: Sequence[str] = self.typed["amounts"]
        return amounts

    def has(self, *parameters: str) -> bool:
        """Whether some of these parameters were given."""
        return any(self.typed.get(name) for name in parameters)

    def with_typed(self, **typed: Any) -> RequestOptions:
        """The same options with others instead of some."""
        return replace(self, typed={**self.typed, **typed})

    @property
    def is_empty(self) -> bool:
        """Whether no option asks for anything, whatever they assume of the fleet."""
        return not self.has(*_OF_REQUEST, "flavor")

    @property
    def has_request(self) -> bool:
        """Whether anything is asked for but conditions on hosts, and drains to tolerate."""
        return self.has(*_OF_FLAVOR, "flavor", "request")

    def conditions(self) -> dict[str, Any]:
        """The members `host`, `tolerate` and `what_if` of a body without a request."""
        return {**self._restrictions(), **without_none(what_if=self.what_if() or None)}

    def body(self) -> dict[str, Any]:
        """The members `request` and `what_if` of a question, and of a file all others.

        Raises:
            UsageError: no amount is given, or an option does not have its form.
        """
        if self.typed["request"]:
            body = self._body_of_file(self.typed["request"])
        else:
            body = {"request": self._pasted() or self._request()}
        if what_if := self.what_if():
            body["what_if"] = {**body.get("what_if", {}), **what_if}
        return body

    def what_if(self) -> dict[str, Any]:
        """The assumptions."""
        if not self.has(*_ASSUMING):
            return {}
        nothing_used = {"nothing_used": True} if self.typed["nothing_used"] else {}
        return {**nothing_used, **_members(_OF_SCENARIO, self.typed)}

    def _pasted(self) -> dict[str, Any] | None:
        """The request in what was pasted instead of amounts; also without quotes around it."""
        if not any(map(_PASTED.search, self.amounts)):
            return None
        # What stands beside it would be lost.
        for name, value in self.typed.items():
            if value and name not in ("amounts", "tolerate", *_ASSUMING):
                pasted = "CLASS=AMOUNT" if name == "flavor" else "a query"
                raise click.UsageError(f"{pasted} and {_spelled(name)} exclude each other")
        try:
            return {**request_in(" ".join(self.amounts)), **self._restrictions()}
        except NotReadable as error:
            raise click.UsageError(str(error)) from error

    def _body_of_file(self, file: TextIO) -> dict[str, Any]:
        others = (*_OF_REQUEST, "flavor")
        self._exclude("request", (name for name in others if name != "request"))
        body = read_json(file)
        return body if "request" in body else {"request": body}

    def _exclude(self, name: str, others: Iterable[str]) -> None:
        """Refuse other parameters beside one."""
        for other in others:
            if self.has(other):
                raise click.UsageError(f"{_spelled(other)} and --{name} exclude each other")

    def _request(self) -> dict[str, Any]:
        may_name_flavor = "flavor" in self.typed
        named = [each for each in self.amounts if "=" not in each] if may_name_flavor else []
        if len(named) > 1 or (named and self.has("flavor")):
            raise click.UsageError(f"a request has one flavor: remove {named[-1]}")
        if named and len(self.amounts) > 1:
            raise click.UsageError(
                f"{named[0]} is not CLASS=AMOUNT, as in VCPU=4, and a flavor excludes amounts"
            )
        if named:
            return self.with_typed(flavor=named[0], amounts=())._request()
        if self.has("flavor"):
            self._exclude("flavor", _OF_FLAVOR)
            return {"flavor": self.typed["flavor"], **self._restrictions()}
        return {
            "groups": self._groups(),
            **self._restrictions(),
            **_members(_RELATIONS, self.typed),
        }

    def _restrictions(self) -> dict[str, Any]:
        """What may stand beside a flavor."""
        host = _members(_OF_HOST, self.typed)
        return {**without_none(host=host or None), **_members(_TOLERATED, self.typed)}

    def _groups(self) -> dict[str, Any]:
        unnamed = _group(self.amounts, self.typed)
        groups = {"": unnamed} if unnamed else {}
        groups |= map(_named_group, self.typed["group"])
        if not groups:
            raise click.UsageError("nothing is requested: give CLASS=AMOUNT, as in VCPU=4")
        return groups


def _spelled(parameter: str) -> str:
    """How a user knows a parameter."""
    return "CLASS=AMOUNT" if parameter == "amounts" else f"--{parameter.replace('_', '-')}"


def _group(amounts: Sequence[str], typed: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    resources = amounts_of(amounts) or None
    return {**without_none(resources=resources), **_members(_OF_GROUP, typed)}


def _named_group(text: str) -> tuple[str, dict[str, Any]]:
    """A group as it is typed: `_GPU VGPU=1 required=CUSTOM_A100`."""
    name, *words = shlex.split(text) or [""]
    texts: dict[str, list[str]] = {name: [] for name in _parameters(_OF_GROUP)}
    amounts = []
    for word in words:
        key, _, value = word.partition("=")
        if key in texts:
            texts[key].append(value)
        else:
            amounts.append(word)
    if not name or "=" in name:
        raise click.UsageError(
            f"--group '{text}' begins with the group's name, as in '_GPU VGPU=1'"
        )
    return name, _group(amounts, texts)


def _decorators(*options: MemberOption) -> tuple[Decorator, ...]:
    return tuple(option.decorator() for option in options)


_DECORATORS_OF_REQUEST: Final = (
    _REQUEST_FILE,
    *_decorators(*_OF_GROUP),
    _GROUP,
    *_decorators(*_OF_HOST, *_RELATIONS, *_TOLERATED),
)


def _request_options(**typed: Any) -> RequestOptions:
    return RequestOptions(typed)


#: Adds the options of a question; the command gets a `RequestOptions` as `request`.
takes_question: Final = gathering(
    "request",
    _request_options,
    (
        _FLAVOR_OR_AMOUNTS,
        *_DECORATORS_OF_REQUEST,
        _FLAVOR,
        _NOTHING_USED,
        *_decorators(*_OF_SCENARIO),
    ),
    _OF_QUESTION,
)

#: Adds the options of a request, without a flavor or assumptions; the command gets the same.
takes_request: Final = gathering(
    "request", _request_options, (_AMOUNTS, *_DECORATORS_OF_REQUEST), _OF_REQUEST
)


def ordering(text: str) -> Decorator:
    """Add the options that say which candidate comes first; the command gets the order of a body as
    `order`, None if none is given.

    Args:
        text: the help of `--order`.
    """
    options = (
        click.option(
            "--order", "by", type=click.Choice(["any", "random", "pack", "spread"]), help=text
        ),
        option(
            "--preserve FLAVOR[=WEIGHT]...",
            "Instead of --order: prefer hosts where this flavor would lose the least room; "
            "may be repeated, with weights, 1 unless given.",
        ),
        option(
            "--prefer TRAITS[=WEIGHT]...",
            "Prefer hosts with these traits, in the form of --required: they add WEIGHT to "
            "the score, 1 unless given; may be repeated.",
        ),
        option(
            "--among N",
            "Compare only N of the hosts that fit, which is faster.",
            type=click.IntRange(min=1),
        ),
    )
    return gathering("order", _order, options)


def _order(
    by: str | None, preserve: Sequence[str], prefer: Sequence[str], among: int | None
) -> dict[str, Any] | None:
    """The order of a body.

    Raises:
        UsageError: a preference does not have its form, or there are two orders.
    """
    if by and preserve:
        raise click.UsageError("--order and --preserve exclude each other")
    order = without_none(
        by="preserve" if preserve else by,
        preserve=dict(map(_preserved, preserve)) or None,
        prefer=list(map(_preference, prefer)) or None,
        among=among,
    )
    return order or None


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
