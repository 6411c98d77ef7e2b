# SPDX-License-Identifier: Apache-2.0
"""`berth why`: why a request does not fit, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from berth.cli.columns import amount, counted, print_columns, print_line
from berth.cli.fleet.access import Access
from berth.cli.fleet.request_options import RequestOptions, takes_question, without_none
from berth.cli.options import accessing, option
from berth.cli.output import say
from berth.model.paths import EXPLAIN

if TYPE_CHECKING:
    from berth.cli.fleet.references import Json


@click.command()
@takes_question
@option("--nearest N", "Name the N nearest hosts.", type=click.IntRange(0, 50))
@option("--seconds S", "Stop after S seconds.", type=click.FloatRange(min=0))
@accessing
def why(
    access: Access, request: RequestOptions, nearest: int | None, seconds: float | None
) -> None:
    """Explain why a request does not fit, and what would help.

    \b
      berth why VCPU=16 MEMORY_MB=32768 --required HW_CPU_X86_AVX512F --host-member-of zone=z2
      berth why m1.large --host-in cn31
      berth why 'resources=VCPU:16&required=HW_CPU_X86_AVX512F'
      berth why '... "GET /placement/allocation_candidates?resources=VCPU%3A16" status: 200'

    The last two are pasted from a log: a query, or a whole line that has one. It takes the
    arguments and options of `berth candidates`. ALONE counts the hosts that satisfy one constraint
    by itself, and LEFT those that satisfy it and all above it.
    """
    body = request.body() | without_none(nearest_max=nearest, seconds=seconds)
    with access.client() as client:
        client.show(client.send("POST", EXPLAIN, body), print_explanations)


_HEADS: Final = ("CONSTRAINT", "ALONE", "LEFT", "")


def fits(answer: Any) -> bool:
    """Whether a request fits by itself, in any of its alternatives."""
    return any(each["verdict"] == "fits" for each in answer.get("alternatives", (answer,)))


def print_explanations(answer: Any) -> None:
    """Print an explanation, or one for each alternative of a request."""
    if isinstance(answer.get("alternatives"), list):
        for number, explanation in enumerate(answer["alternatives"]):
            say(*([""] if number else []), f"Alternative {number}:")
            print_explanation(explanation)
    else:
        print_explanation(answer)


def print_explanation(explanation: Json) -> None:
    """Print the summary, the constraints, the changes that help, and the nearest hosts."""
    say(explanation["summary"])
    texts = {stage["at"]: stage["text"] for stage in explanation["stages"]}
    if texts:
        say()
        rows = [_stage(stage) for stage in explanation["stages"]]
        print_columns(_HEADS, rows, right=("ALONE", "LEFT"), indent=2)
    for item in explanation.get("impossible", ())[1:]:
        print_line(item["text"])
    relaxations = [*_spelled(explanation)]
    relaxations += [_relaxation(item, texts) for item in explanation.get("relaxations", ())]
    if relaxations:
        say("", "It would fit")
        width = max(len(change) for change, _ in relaxations)
        for change, hosts in relaxations:
            print_line(f"  {change.ljust(width)}  {hosts}")
    for line in (*_unknown(explanation), *_nearest(explanation, texts)):
        print_line(line)
    if not explanation["complete"]:
        say("The time ended: some figures are lower bounds.")


def _stage(stage: Json) -> list[str]:
    alone = stage.get("alone")
    notes = []
    if "has" in stage:
        resource_class = stage["text"].partition(" ")[0]
        notes = [f"{amount(stage['has'])} have {resource_class}"]
        if stage.get("if_empty") is not None:
            notes.append(f"{amount(stage['if_empty'])} could hold it")
    left = f"{'≥' if stage.get('at_least') else ''}{amount(stage['left'])}"
    return [stage["text"], "-" if alone is None else amount(alone), left, ", ".join(notes)]


# --- What would help ------------------------------------------------------------------------------


def _relaxation(item: Json, texts: Mapping[str, str]) -> tuple[str, str]:
    """The change, and how many hosts fit with it."""
    if "reduce_to" in item:
        pointer = item["drop"][0]
        group = "".join(texts.get(pointer, "").partition(" for ")[1:])
        change = f"with {_class_of(pointer)} {amount(item['reduce_to'])}{group}"
        return change, counted(item["hosts_reduced"], "host")
    changes = " and ".join(_without(texts.get(at, at)) for at in item["drop"])
    return changes, counted(item["hosts"], "host")


def _spelled(explanation: Json) -> Iterator[tuple[str, str]]:
    """The suggestions for unknown names with which some host fits."""
    for item in explanation.get("unknown", ()):
        for name, hosts in item.get("hosts", {}).items():
            if hosts:
                yield f"with {name} instead of {item['name']}", counted(hosts, "host")


def _without(text: str) -> str:
    if text.startswith("on "):
        return "on any other host"
    if text.startswith("in "):
        return f"outside of {text.removeprefix('in ')}"
    if text.startswith("not "):
        condition = text.removeprefix("not ")
        if condition.startswith("trait "):
            return f"with {condition} allowed"
        return "with drained hosts" if condition == "drained" else f"{condition} too"
    return f"without {text}"


def _unknown(explanation: Json) -> Iterator[str]:
    """The unknown names that the summary leaves out."""
    for item in explanation.get("unknown", ()):
        if item["name"] in explanation["summary"]:
            continue
        hint = (
            f"; did you mean {' or '.join(item['did_you_mean'])}?" if item["did_you_mean"] else ""
        )
        yield f"There is no {item['kind'].replace('_', ' ')} {item['name']}{hint}"


def _nearest(explanation: Json, texts: Mapping[str, str]) -> Iterator[str]:
    hosts = explanation.get("nearest", ())
    for number, host in enumerate(hosts):
        head = "Nearest:" if number == 0 else "        "
        yield f"{head} {host['host']['name']} {' and '.join(_lacks(host['lacks'], texts))}"
        if host.get("consumers"):
            holders = [_holder(item, host["lacks"]) for item in host["consumers"]]
            more = ", and more" if host.get("more_consumers") else ""
            yield f"           held by {', '.join(holders)}{more}"


def _holder(consumer: Json, lacks: Iterable[Json]) -> str:
    """Who it is, of which project, and what it holds of what is lacked."""
    lacked = {_class_of(item["at"]) for item in lacks if "asked" in item}
    holds: dict[str, int] = {}
    for provider in consumer["allocations"].values():
        for name, number in provider["resources"].items():
            if name in lacked:
                holds[name] = holds.get(name, 0) + number
    amounts = ", ".join(f"{name} {amount(number)}" for name, number in holds.items())
    return f"{consumer['name'] or consumer['uuid']} of {consumer['project_id']} ({amounts})"


def _lacks(items: Iterable[Json], texts: Mapping[str, str]) -> Iterator[str]:
    """What a host lacks; what it lacks of a class for several groups, and for one reason, once."""
    missing: dict[tuple[str, str], int] = {}
    for item in items:
        if "asked" in item:
            key = _class_of(item["at"]), _reason(item, texts)
            missing[key] = missing.get(key, 0) + item["asked"] - item["possible"]
        else:
            yield _unmet(texts.get(item["at"], item["at"]))
    for (name, reason), number in missing.items():
        yield f"lacks {amount(number)} {name}{reason}"


def _reason(item: Json, texts: Mapping[str, str]) -> str:
    if "capacity" not in item:
        return ""
    reason = item["reason"].replace("_", " ")
    free = f"{amount(item['free'])} free of {amount(item['capacity'])}"
    if item["reason"] == "used":
        reason = free
    elif item["reason"] == "conditions":
        unmet = [_unmet(texts.get(at, at)) for at in item.get("unmet", ())]
        is_so = f"{item['provider']['name']} {' and '.join(unmet)}"
        reason = is_so if unmet else f"{free}, but not for the rest of the request"
    elif item["reason"] in item:
        reason = f"{reason} {amount(item[item['reason']])}"
    return f" ({reason})"


def _unmet(text: str) -> str:
    """`lacks trait X`, `has trait X`, `is not in zone=z1` or `is in zone=z1`: the opposite of
    a condition."""
    is_negated = text.startswith("not ")
    condition = text.removeprefix("not ")
    if condition.startswith("trait "):
        return f"{'has' if is_negated else 'lacks'} {condition}"
    if condition.startswith(("together ", "apart ")):
        return f"does not have groups {condition}"
    if condition.startswith("on ") and not is_negated:
        return f"is not {condition.removeprefix('on ')}"
    return f"is {condition}" if is_negated else f"is not {condition}"


def _class_of(pointer: str) -> str:
    return pointer.rpartition("/")[2]
