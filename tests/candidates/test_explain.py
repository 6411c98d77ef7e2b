# SPDX-License-Identifier: Apache-2.0
"""Why nothing fits, and what would help (spec/beyond.md 3)."""

from __future__ import annotations

from itertools import count, pairwise
from pathlib import Path

import pytest

from berth.candidates import Budget
from berth.candidates.explain import Explanation, Wanted, explain
from berth.candidates.explain.explanation import Shortage
from berth.candidates.question import Question, QuestionGroup, QuestionHost, QuestionRelation, Split
from berth.index import Snapshot
from tests.candidates.questions import asked, group, items, question
from tests.worlds import World, provider_uuid, world

#: cn1 is small, cn2 is in use, cn3 lacks the trait; the pool has the disk of all.
FLEET = world("""
    cn1     VCPU=4  MEMORY_MB=4096  CUSTOM_FAST  @A
    cn2     VCPU=16(used:12)  MEMORY_MB=8192  CUSTOM_FAST  @A
    cn3     VCPU=16  MEMORY_MB=8192  @A
    pool    DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
""")
#: As much as the product allows by default.
EVERYTHING = Wanted(paint=True)


def explained(
    fleet: World, prepared: Path, wanted: Question, budget: Budget | None = None
) -> Explanation:
    """The explanation of a question of a drawn world."""
    with asked(fleet, prepared) as there:
        return explain(there.snapshot, wanted, wanted=EVERYTHING, budget=budget or Budget())


def wants(amounts: str, traits: str = "", **members: object) -> Question:
    """A question of one group."""
    return question(groups={"": group(amounts, required=items(traits))}, **members)


def names_of(explanation: Explanation) -> list[str | None]:
    """The nearest hosts by name."""
    return [near.host.name for near in explanation.nearest or ()]


def shortage_of(explanation: Explanation) -> Shortage:
    """What the nearest host lacks of a class."""
    assert explanation.nearest
    (lack,) = explanation.nearest[0].lacks
    assert lack.shortage is not None
    return lack.shortage


def test_each_stage_says_what_is_left_and_what_fits_alone(prepared: Path) -> None:
    """Alone, left, has, and with nothing used."""
    explanation = explained(FLEET, prepared, wants("VCPU=8 MEMORY_MB=8192", "CUSTOM_FAST"))
    assert [stage[:6] for stage in explanation.stages] == [
        ("/groups//resources/VCPU", "VCPU 8", 1, 1, 3, 2),
        ("/groups//resources/MEMORY_MB", "MEMORY_MB 8192", 1, 2, 3, 2),
        ("/groups//required/0", "trait CUSTOM_FAST", 0, 2, None, None),
    ]
    assert not any(stage.at_least for stage in explanation.stages)
    assert explanation.hosts.total == 4
    assert explanation.hosts.pools == 1
    assert explanation.is_complete


def test_relaxations_come_most_helpful_first_and_with_the_largest_smaller_amount(
    prepared: Path,
) -> None:
    """Without the class two hosts fit, with 4 instead of 8 both too; without the trait one."""
    asking = question(groups={"_A": group("VCPU=8", required=items("CUSTOM_FAST"))})
    explanation = explained(FLEET, prepared, asking)
    assert explanation.relaxations is not None
    first, second = explanation.relaxations
    assert first == (("/groups/_A/resources/VCPU",), ("VCPU 8 for _A",), 2, 4, 2, False)
    assert second == (
        ("/groups/_A/required/0",),
        ("trait CUSTOM_FAST for _A",),
        1,
        None,
        None,
        False,
    )
    assert explanation.binding == ("/groups/_A/resources/VCPU", "/groups/_A/required/0")
    assert explanation.summary == (
        "No host fits now; 1 would with nothing used."
        " With VCPU 4 instead of 8 for _A, 2 hosts fit."
        " Without trait CUSTOM_FAST for _A, 1 host fits."
    )


def test_what_a_group_must_not_be_under_is_an_atom(prepared: Path) -> None:
    """Without it the host fits, and not without what is asked before it."""
    fleet = world("cn1\n  numa0  VCPU=4  CUSTOM_FAST\n  numa1  VCPU=1")
    fast = group("VCPU=4", required=items("CUSTOM_FAST"), not_under=("numa0",))
    asking = question(groups={"_A": fast})
    explanation = explained(fleet, prepared, asking)
    assert [(each.at, each.left) for each in explanation.stages] == [
        ("/groups/_A/resources/VCPU", 1),
        ("/groups/_A/required/0", 1),
        ("/groups/_A/not_under", 0),
    ]
    assert [(each.drop, each.hosts) for each in explanation.relaxations or ()] == [
        (("/groups/_A/not_under",), 1)
    ]


def test_a_trait_of_a_node_that_gives_nothing_does_not_count(prepared: Path) -> None:
    """One node has the trait, and the other one the room."""
    fleet = world("cn1\n  numa0  VCPU=4(used:4)  CUSTOM_FAST\n  numa1  VCPU=4")
    explanation = explained(fleet, prepared, wants("VCPU=1", "CUSTOM_FAST"))
    assert [stage.left for stage in explanation.stages] == [1, 0]
    assert explanation.hosts.fit.hosts == 0


def test_pairs_are_sought_if_no_single_change_helps(prepared: Path) -> None:
    """cn2 has neither the processors nor the trait."""
    asking = question(groups={"_A": group("VCPU=8", required=items("CUSTOM_FAST !CUSTOM_SLOW"))})
    fleet = world("cn2  VCPU=4", traits="CUSTOM_FAST CUSTOM_SLOW")
    explanation = explained(fleet, prepared, asking)
    assert explanation.relaxations is not None
    assert [(each.texts, each.hosts) for each in explanation.relaxations] == [
        (("VCPU 8 for _A", "trait CUSTOM_FAST for _A"), 1)
    ]
    assert explanation.binding == ()
    assert explanation.nearest is not None
    (near,) = explanation.nearest
    assert [lack.text for lack in near.lacks] == ["VCPU 8 for _A", "trait CUSTOM_FAST for _A"]
    assert near.lacks[0].shortage is not None
    assert near.lacks[0].shortage.possible == 4


@pytest.mark.parametrize(
    ("fleet", "asking", "verdict", "summary"),
    [
        (FLEET, wants("VCPU=8"), "fits", "1 host fits."),
        (
            FLEET,
            wants("VCPU=99"),
            "never",
            "No host could hold this, even with nothing used. No provider can give 99 VCPU at once;"
            " the most is 16. With VCPU 16 instead of 99, 1 host fits.",
        ),
        (
            world("cn1  VCPU=8(used:4)\ncn2  VCPU=8(used:6)"),
            wants("VCPU=6"),
            "fragmented",
            "No host fits now; 2 would with nothing used. Enough is free in total, but not on one"
            " host. With VCPU 4 instead of 6, 1 host fits.",
        ),
        (
            world("cn1  VCPU=8(used:4)\ncn2  VCPU=8(used:7)"),
            wants("VCPU=6"),
            "used_up",
            "No host fits now; 2 would with nothing used. With VCPU 4 instead of 6, 1 host fits.",
        ),
        (
            FLEET,
            wants("VCPU=1", "CUSTOM_FST"),
            "unknown_name",
            "There is no trait CUSTOM_FST; did you mean CUSTOM_FAST?",
        ),
        (
            world("cn1  VCPU=8(used:8)\ncn2  VCPU=8"),
            wants("VCPU=8", host=QuestionHost(within=(("cn1",),))),
            "used_up",
            "No host fits now; 1 would with nothing used. On any other host, 1 host fits."
            " Without VCPU 8, 1 host fits.",
        ),
    ],
)
def test_the_verdict_is_the_first_that_applies(
    prepared: Path, fleet: World, asking: Question, verdict: str, summary: str
) -> None:
    """Each verdict, and its sentence."""
    explanation = explained(fleet, prepared, asking)
    assert explanation.verdict.value == verdict
    assert explanation.summary == summary


def test_what_is_free_in_a_pool_counts_for_the_hosts_that_it_serves(prepared: Path) -> None:
    """100 GB are free where nobody fits, and the pool of the others has 60."""
    fleet = world("""
        cn1     VCPU=8(used:8)  @A
        pool    DISK_GB=60  MISC_SHARES_VIA_AGGREGATE  @A
        cn2     DISK_GB=100
    """)
    asking = wants("VCPU=4 DISK_GB=50")
    assert explained(fleet, prepared, asking).verdict.value == "used_up"
    fuller = world(str(fleet).replace("VCPU=8(used:8)", "VCPU=8(used:5)"))
    assert explained(fuller, prepared, wants("VCPU=3 DISK_GB=50")).verdict.value == "fits"
    several = world(f"{fuller}\ncn3  VCPU=8(used:6)  @A")
    assert explained(several, prepared, wants("VCPU=4 DISK_GB=50")).verdict.value == "fragmented"


def test_the_rest_is_explained_without_atoms_of_unknown_names(prepared: Path) -> None:
    """The unknown names are listed with their pointers, and no stage has them."""
    asking = question(
        groups={"_A": group("VCPU=8 CUSTOM_NONE=1", required=items("CUSTOM_FST|CUSTOM_FAST"))}
    )
    explanation = explained(FLEET, prepared, asking)
    assert [(each.at, each.kind, each.name) for each in explanation.unknown_names] == [
        ("/groups/_A/resources/CUSTOM_NONE", "resource_class", "CUSTOM_NONE"),
        ("/groups/_A/required/0/0", "trait", "CUSTOM_FST"),
    ]
    assert [stage.at for stage in explanation.stages] == ["/groups/_A/resources/VCPU"]
    assert explanation.hosts.fit.hosts == 1


def test_only_the_atom_that_has_an_unknown_name_is_left_out(prepared: Path) -> None:
    """The eleventh, and not the second, with which its pointer begins."""
    traits = " ".join(f"CUSTOM_T{number}" for number in range(10))
    fleet = world("cn1  VCPU=1", traits=traits)
    explanation = explained(fleet, prepared, wants("VCPU=1", f"{traits} CUSTOM_NONE"))
    assert [stage.at for stage in explanation.stages[1:]] == [
        f"/groups//required/{number}" for number in range(10)
    ]


@pytest.mark.parametrize(
    ("inventory", "amount", "possible", "reason"),
    [
        ("VCPU=16(used:12)", 8, 4, "used"),
        ("VCPU=4", 8, 4, "capacity"),
        ("VCPU=16(max:3)", 8, 3, "max_unit"),
        ("VCPU=16(min:4)", 2, 0, "min_unit"),
        ("VCPU=16(step:5)", 8, 5, "step_size"),
        ("VCPU=16(step:4,min:8)", 7, 0, "min_unit"),
        ("MEMORY_MB=4", 8, 0, "no_inventory"),
    ],
)
def test_a_shortage_says_how_much_is_possible_and_why(
    prepared: Path, inventory: str, amount: int, possible: int, reason: str
) -> None:
    """The largest smaller amount, in steps and from the least on."""
    shortage = shortage_of(explained(world(f"cn1  {inventory}"), prepared, wants(f"VCPU={amount}")))
    assert (shortage.asked, shortage.possible, shortage.reason) == (amount, possible, reason)
    assert (shortage.best is None) == (reason == "no_inventory")


def test_the_largest_amount_is_found_among_several_steps(prepared: Path) -> None:
    """Neither step's multiples alone have all amounts: 9 of the first, 10 of the second."""
    fleet = world("""
        cn1  VCPU=16(step:3,used:5)
        cn2  VCPU=16(step:5,min:10,used:4)
        cn3  VCPU=16(step:7,used:8)
    """)
    explanation = explained(fleet, prepared, wants("VCPU=13"))
    assert explanation.relaxations is not None
    (relaxation,) = explanation.relaxations
    assert (relaxation.reduce_to, relaxation.hosts_reduced) == (10, 1)
    # Nothing fits even with nothing used, with which cn1 has 12 of its steps.
    assert names_of(explanation) == ["cn1", "cn2", "cn3"]


def test_sums_of_groups_bound_the_smaller_amount(prepared: Path) -> None:
    """Two groups share one provider: what one takes, the other cannot have."""
    asking = question(groups={"_A": group("VCPU=12"), "_B": group("VCPU=8")})
    explanation = explained(FLEET, prepared, asking)
    assert explanation.relaxations is not None
    assert [(each.texts, each.reduce_to) for each in explanation.relaxations] == [
        (("VCPU 12 for _A",), 8),
        (("VCPU 8 for _B",), 4),
    ]
    assert explanation.split_would_fit is None


def test_the_nearest_hosts_lack_least_of_one_atom(prepared: Path) -> None:
    """cn3 lacks a tenth of its memory; cn1 and cn2 half of their processors or more."""
    fleet = world("""
        cn1  VCPU=4  MEMORY_MB=100
        cn2  VCPU=2  MEMORY_MB=100
        cn3  VCPU=8  MEMORY_MB=90
        cn4  VCPU=1  MEMORY_MB=1
    """)
    explanation = explained(fleet, prepared, wants("VCPU=8 MEMORY_MB=100"))
    assert names_of(explanation) == ["cn3", "cn1", "cn2"]
    assert shortage_of(explanation).possible == 90


def test_hosts_that_lack_many_atoms_are_ranked_by_how_many(prepared: Path) -> None:
    """No pair helps, so the largest sets of atoms that fit are sought."""
    fleet = world("cn1  VCPU=8\ncn2  MEMORY_MB=1", classes="DISK_GB", traits="CUSTOM_X CUSTOM_Y")
    asking = question(
        groups={
            "_A": group("VCPU=8 MEMORY_MB=100 DISK_GB=5", required=items("CUSTOM_X CUSTOM_Y")),
        }
    )
    explanation = explained(fleet, prepared, asking)
    assert explanation.relaxations == ()
    assert names_of(explanation) == ["cn1", "cn2"]
    assert explanation.nearest is not None
    assert [lack.text for lack in explanation.nearest[0].lacks] == [
        "MEMORY_MB 100 for _A",
        "DISK_GB 5 for _A",
        "trait CUSTOM_X for _A",
        "trait CUSTOM_Y for _A",
    ]


def test_the_best_provider_meets_the_other_conditions(prepared: Path) -> None:
    """numa1 has more, but not the trait."""
    fleet = world("""
        cn1
          numa0  VCPU=4  CUSTOM_FAST
          numa1  VCPU=6
    """)
    asking = question(groups={"_A": group("VCPU=8", required=items("CUSTOM_FAST"))})
    best = shortage_of(explained(fleet, prepared, asking)).best
    assert best is not None
    assert (best.provider.name, best.free) == ("numa0", 4)


def test_the_best_provider_is_the_one_with_most_to_give(prepared: Path) -> None:
    """Neither the first nor the last, nor the one with most capacity."""
    fleet = world("""
        cn1      DISK_GB=1
          numa0  VCPU=9(used:8)
          numa1  VCPU=7(used:1)
          numa2  VCPU=8(used:4)
    """)
    best = shortage_of(explained(fleet, prepared, wants("VCPU=7 DISK_GB=1"))).best
    assert best is not None
    assert (best.provider.name, best.free) == ("numa1", 6)


def test_a_split_would_fit(prepared: Path) -> None:
    """Two NUMA nodes have together what none has alone."""
    fleet = world("""
        cn1      DISK_GB=10
          numa0  VCPU=4  MEMORY_MB=8
          numa1  VCPU=4  MEMORY_MB=8
        cn2      DISK_GB=10  VCPU=6  MEMORY_MB=16
    """)
    explanation = explained(fleet, prepared, wants("VCPU=7 MEMORY_MB=12 DISK_GB=1"))
    assert explanation.split_would_fit == (1, False)
    named = question(groups={"_A": group("VCPU=7 MEMORY_MB=12"), "_D": group("DISK_GB=1")})
    assert explained(fleet, prepared, named).split_would_fit == (1, False)
    apart = QuestionRelation(("_A", "_D"), "tree")
    explanation = explained(fleet, prepared, Question(named.groups, apart=(apart,)))
    assert explanation.split_would_fit == (0, False)


def test_whether_a_split_would_fit_is_left_out(
    prepared: Path,
) -> None:
    """Where something fits, where no relaxations are asked for, and where several groups ask for
    one class, because only one of them could split it."""
    fleet = world("cn1\n  numa0  VCPU=4\n  numa1  VCPU=4")
    assert explained(fleet, prepared, wants("VCPU=4")).split_would_fit is None
    several = question(groups={"_A": group("VCPU=5"), "_B": group("VCPU=1")})
    assert explained(fleet, prepared, several).split_would_fit is None
    assert explained(fleet, prepared, wants("VCPU=5")).split_would_fit == (1, False)
    with asked(fleet, prepared) as there:
        wanted = Wanted(relaxations=False)
        short = explain(there.snapshot, wants("VCPU=5"), wanted=wanted, budget=Budget())
    assert short.split_would_fit is None


def test_the_parts_of_one_group_need_not_be_apart(prepared: Path) -> None:
    """Only those of different groups."""
    fleet = world("""
        cn1      DISK_GB=10
          numa0  VCPU=4
          numa1  VCPU=4
    """)
    groups = {"_A": group("VCPU=7"), "_D": group("DISK_GB=1")}
    apart = question(groups=groups, apart=(QuestionRelation(("_A", "_D"), "provider"),))
    assert explained(fleet, prepared, apart).split_would_fit == (1, False)


def test_a_split_would_fit_next_to_what_a_pool_shares(prepared: Path) -> None:
    """The host has too little disk itself, and the pool has enough."""
    fleet = world("""
        cn1      DISK_GB=1  @A
          numa0  VCPU=4
          numa1  VCPU=4
        pool     DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    """)
    explanation = explained(fleet, prepared, wants("VCPU=7 DISK_GB=10"))
    assert explanation.split_would_fit == (1, False)


def test_classes_of_a_group_from_different_providers_would_fit(prepared: Path) -> None:
    """A named group needs one provider for all of its classes, and no host has several providers
    of one class."""
    fleet = world("""
        cn1      DISK_GB=10
          numa0  VCPU=4
    """)
    named = question(groups={"_A": group("VCPU=1 DISK_GB=1")})
    assert explained(fleet, prepared, named).split_would_fit == (1, False)


@pytest.mark.parametrize(
    ("rooms", "wanted", "due"), [((5, 4), 8, 6), ((8, 6), 30, 12)], ids=["near", "far"]
)
def test_a_smaller_amount_may_be_split_too(
    prepared: Path, rooms: tuple[int, int], wanted: int, due: int
) -> None:
    """Of two nodes, in steps of three; one node alone may give any amount."""
    fleet = world("cn1\n  numa0  VCPU={}\n  numa1  VCPU={}".format(*rooms))
    split = (("VCPU", Split(min=3, step=3)),)
    explanation = explained(
        fleet, prepared, question(groups={"": group(f"VCPU={wanted}", split=split)})
    )
    assert explanation.relaxations is not None
    (relaxation,) = explanation.relaxations
    assert relaxation.reduce_to == due


def test_a_relation_is_an_atom(prepared: Path) -> None:
    """Without it the host fits; alone it counts nothing."""
    fleet = world("""
        cn1
          numa0  VCPU=4  HW_NUMA_ROOT
            gpu0  VGPU=1
          numa1  MEMORY_MB=8  HW_NUMA_ROOT
    """)
    together = QuestionRelation(("_A", "_B"), "HW_NUMA_ROOT")
    asking = question(
        groups={"_A": group("VGPU=1"), "_B": group("MEMORY_MB=8")}, together=(together,)
    )
    explanation = explained(fleet, prepared, asking)
    last = explanation.stages[-1]
    assert last[:4] == ("/together/0", "together at HW_NUMA_ROOT: _A, _B", 0, None)
    assert explanation.binding == (
        "/groups/_A/resources/VGPU",
        "/groups/_B/resources/MEMORY_MB",
        "/together/0",
    )


def test_a_relation_without_effect_is_named(prepared: Path) -> None:
    """One provider serves both groups on every host that fits, so "subtree" says nothing."""
    flat = world("cn1  VCPU=4  MEMORY_MB=8")
    nested = world(
        f"{flat}\ncn2\n  numa0  VCPU=4\n    memory0  MEMORY_MB=8\n  memory1  MEMORY_MB=8"
    )
    apart = world("cn1\n  numa0  VCPU=4\n    memory0  MEMORY_MB=8")
    subtree = QuestionRelation(("_A", "_B"), "subtree")
    asking = question(
        groups={"_A": group("VCPU=1"), "_B": group("MEMORY_MB=8")}, together=(subtree,)
    )
    assert [each.at for each in explained(flat, prepared, asking).ineffective] == ["/together/0"]
    assert explained(nested, prepared, asking).ineffective == ()
    assert explained(apart, prepared, asking).ineffective == ()


def test_drained_providers_do_not_count_where_drains_are_kept(prepared: Path) -> None:
    """Not as the best provider of a shortage, unless there is no other; nor for what a relation
    changes."""
    fleet = world("cn1\n  numa0  VCPU=4\n  numa1  VCPU=8  !d")
    shortage = shortage_of(explained(fleet, prepared, wants("VCPU=16")))
    assert shortage.best is not None and shortage.best.provider.name == "numa0"
    assert shortage.possible == 4
    whole = world("cn1  VCPU=4  !d")
    explanation = explained(whole, prepared, wants("VCPU=16"))
    assert explanation.verdict.value == "never"
    subtree = QuestionRelation(("_A", "_B"), "subtree")
    asking = question(groups={"_A": group("VCPU=1"), "_B": group("VCPU=1")}, together=(subtree,))
    lines = "cn1  VCPU=4\n  numa0  VCPU=4"
    for drawn, due in ((lines, []), (f"{lines}  !d", ["/together/0"]), (f"{lines}  ?d", [])):
        ineffective = explained(world(drawn), prepared, asking).ineffective
        assert [each.at for each in ineffective] == due


def test_a_verdict_of_drains_is_said_once(prepared: Path) -> None:
    """And not again among what would help."""
    explanation = explained(world("cn1  VCPU=4  !d"), prepared, wants("VCPU=1"))
    assert explanation.summary == "No host fits now; 1 would without drains."
    assert [each.drop for each in explanation.relaxations or ()] == [("/drains",)]
    some = explained(world("cn1  VCPU=4  !d\ncn2  VCPU=2"), prepared, wants("VCPU=4"))
    assert some.summary == (
        "No host fits now; 1 would without drains. With VCPU 2 instead of 4, 1 host fits."
    )


@pytest.mark.parametrize("kind", ["together", "apart"])
def test_a_level_that_is_no_trait_is_an_unknown_name(prepared: Path, kind: str) -> None:
    """With the pointer to it, and the hosts that fit with the similar name."""
    groups = {"_A": group("VCPU=1"), "_B": group("VCPU=1")}
    relation = QuestionRelation(("_A", "_B"), "CUSTOM_LEVL")
    fleet = world("cn1\n  numa0  VCPU=2  CUSTOM_LEVEL\n  numa1  VCPU=1  CUSTOM_LEVEL")
    explanation = explained(fleet, prepared, question(groups=groups, **{kind: (relation,)}))
    (unknown,) = explanation.unknown_names
    assert (unknown.at, unknown.kind, unknown.name) == (f"/{kind}/0/at", "trait", "CUSTOM_LEVL")
    assert explanation.instead == {(f"/{kind}/0/at", "CUSTOM_LEVEL"): 1}


def test_every_reference_that_stands_for_nothing_is_named(prepared: Path) -> None:
    """Those of the host and of a group, negated ones too."""
    nobody, nowhere = ("nobody",), items("!no-rack no-rack|no-row")
    asking = question(
        groups={
            "_A": group(
                "VCPU=1",
                in_tree=nobody,
                under=("cn1", *nobody),
                not_under=nobody,
                member_of=nowhere,
            )
        },
        host=QuestionHost(within=(nobody,), not_in=nobody, member_of=nowhere),
    )
    explanation = explained(world("cn1  VCPU=1"), prepared, asking)
    listed = ("member_of/0", "member_of/1/0", "member_of/1/1")
    assert sorted(each.at for each in explanation.unknown_references) == sorted(
        [
            "/host/in/0",
            "/host/not_in/0",
            "/groups/_A/in_tree/0",
            "/groups/_A/under/1",
            "/groups/_A/not_under/0",
            *(f"{of}/{at}" for of in ("/host", "/groups/_A") for at in listed),
        ]
    )


def test_the_host_s_conditions_come_first(prepared: Path) -> None:
    """With words for each."""
    host = QuestionHost(
        required=items("CUSTOM_FAST"),
        anywhere=items("!MISC_SHARES_VIA_AGGREGATE"),
        member_of=items(f"{'ffffffff-ffff-ffff-ffff-ffffffffffff'}"),
        within=(("cn1", "cn2", "pool", provider_uuid("cn1")),),
        not_in=("cn1",),
    )
    explanation = explained(FLEET, prepared, Question((("", group("VCPU=1")),), host=host))
    assert [(stage.text, stage.left) for stage in explanation.stages] == [
        ("on cn1, cn2, pool, 1 more", 3),
        ("not on cn1", 2),
        ("trait CUSTOM_FAST on the root", 1),
        ("not trait MISC_SHARES_VIA_AGGREGATE anywhere", 1),
        ("in ffffffff-ffff-ffff-ffff-ffffffffffff", 0),
        ("VCPU 1", 0),
    ]
    assert [each.at for each in explanation.unknown_references] == ["/host/member_of/0"]


def test_groups_of_a_query_without_resources_are_read_as_placement_reads_them(
    prepared: Path,
) -> None:
    """A group with only a forbidden trait matches nothing in a query, and something in
    a request."""
    groups = {"_A": group("VCPU=1"), "_B": QuestionGroup(required=items("!CUSTOM_FAST"))}
    subtree = QuestionRelation(("_A", "_B"), "subtree")
    for is_query, fit in ((True, 0), (False, 1)):
        asking = question(groups=groups, together=(subtree,), is_query=is_query)
        assert explained(FLEET, prepared, asking).hosts.fit.hosts == fit


def test_paint_has_a_byte_for_each_host_in_the_order_of_their_uuids(prepared: Path) -> None:
    """The first atom that a host no longer fits, or 255; the counts are the differences of
    `left`."""
    explanation = explained(FLEET, prepared, wants("VCPU=4 MEMORY_MB=8192", "CUSTOM_FAST"))
    names = sorted(("cn1", "cn2", "cn3", "pool"), key=provider_uuid)
    assert explanation.paint is not None
    assert dict(zip(names, explanation.paint, strict=True)) == {
        "cn1": 1,
        "cn2": 255,
        "cn3": 2,
        "pool": 0,
    }
    lefts = [4, *(stage.left for stage in explanation.stages)]
    lost = [before - after for before, after in pairwise(lefts)]
    assert [explanation.paint.count(number) for number in range(3)] == lost


def test_more_atoms_than_a_byte_has_numbers_share_the_last_one(prepared: Path) -> None:
    """The host has all traits but the last."""
    *traits, last = [f"CUSTOM_T{number}" for number in range(260)]
    fleet = world(f"cn1  VCPU=1  {' '.join(traits)}", traits=last)
    with asked(fleet, prepared) as there:
        asking = wants("VCPU=1", " ".join([*traits, last]))
        wanted = Wanted(relaxations=False, nearest_max=0, paint=True)
        explanation = explain(there.snapshot, asking, wanted=wanted, budget=Budget())
    assert explanation.paint == b"\xfd"


def looks(seconds: int) -> Budget:
    """A budget that ends after some looks at the clock."""
    clock = count()
    return Budget(lambda: next(clock), seconds=seconds)


@pytest.mark.parametrize(
    ("fleet", "asking"),
    [
        (FLEET, wants("VCPU=8 MEMORY_MB=8192", "CUSTOM_FAST")),
        (
            world("cn1  VCPU=4\ncn2\n  numa0  VCPU=4\n    device0  VGPU=1  VCPU=4"),
            question(
                groups={"_A": group("VCPU=1"), "_B": group("VCPU=1")},
                together=(QuestionRelation(("_A", "_B"), "subtree"),),
            ),
        ),
    ],
    ids=["nothing fits", "a relation"],
)
def test_time_that_ends_never_says_that_nothing_fits(
    prepared: Path, fleet: World, asking: Question
) -> None:
    """Whenever the clock runs out: figures are lower bounds and marked, a verdict of the whole
    fleet is only given where the whole fleet was looked at, no host lacks what it has, and no
    relation is without effect that has one."""
    with asked(fleet, prepared) as there:
        whole = _explained(there.snapshot, asking, Budget())
        verdicts = set()
        for seconds in range(1, 400):
            cut = _explained(there.snapshot, asking, looks(seconds))
            verdicts.add(cut.verdict.value)
            assert cut.verdict.value == "gave_up" or cut.verdict is whole.verdict
            for part, due in zip(cut.stages, whole.stages, strict=True):
                assert part.left <= due.left
                assert part.at_least or part == due
            assert cut.hosts.fit.hosts <= whole.hosts.fit.hosts
            assert set(cut.nearest or ()) <= set(whole.nearest or ())
            assert set(cut.ineffective) <= set(whole.ineffective)
            assert cut.paint is not None
            assert whole.paint is not None
            for byte, painted in zip(cut.paint, whole.paint, strict=True):
                assert byte in (painted, 254)
            if cut.is_complete:
                break
        else:
            pytest.fail("it never ended")
    assert verdicts == {"gave_up", whole.verdict.value}
    assert cut == whole


def _explained(snapshot: Snapshot, asking: Question, budget: Budget) -> Explanation:
    return explain(snapshot, asking, wanted=EVERYTHING, budget=budget)


DEVICES = world("""
    gpu1      VCPU=64  @A
      gpu1_0  PGPU=1(used:1)  CUSTOM_FABRIC
      gpu1_1  PGPU=1(used:1)
      gpu1_2  PGPU=1(used:1)
    nic1      VCPU=64
      nic1_0  CUSTOM_VF=8(used:8)
""")


@pytest.mark.parametrize(
    ("asking", "due"),
    [
        (
            wants("PGPU=3"),
            "No provider can give 3 PGPU at once; the most is 1. One host has 3 on 3 providers: use"
            " several groups, or split it.",
        ),
        (wants("PGPU=4"), "No provider can give 4 PGPU at once; the most is 1."),
        (wants("VGPU=1"), "No provider has VGPU."),
        (
            question(groups={"_A": group("PGPU=1 VCPU=1")}),
            "No provider can give 1 PGPU for _A and 1 VCPU for _A together.",
        ),
        (wants("PGPU=1 CUSTOM_VF=1"), "No host can give 1 PGPU and 1 CUSTOM_VF together."),
        (
            question(
                groups={"_A": group("PGPU=1"), "_B": group("PGPU=1")},
                together=(QuestionRelation(("_A", "_B"), "subtree"),),
            ),
            "No host can give 1 PGPU for _A and 1 PGPU for _B together at subtree.",
        ),
        (
            wants("CUSTOM_VF=1", "CUSTOM_FABRIC"),
            'No host can meet 1 CUSTOM_VF and "trait CUSTOM_FABRIC" together.',
        ),
        (
            wants("VCPU=1", host=QuestionHost(within=(("gpu99",),))),
            'No host meets "on gpu99". There is no provider gpu99.',
        ),
        (wants("VCPU=1", "HW_CPU_X86_AVX2"), 'No host meets "trait HW_CPU_X86_AVX2".'),
    ],
)
def test_what_is_impossible_is_named(prepared: Path, asking: Question, due: str) -> None:
    """Everything is used, but it would be in vain to release it: the part of the request that no
    host could hold is named, whatever else is asked for."""
    explanation = explained(DEVICES, prepared, asking)
    assert explanation.verdict.value == "never"
    assert [each.text for each in explanation.impossible] == [due]
    assert due in explanation.summary


def test_what_is_impossible_is_not_said_to_be_used(prepared: Path) -> None:
    """The nearest host is described with nothing used, because to free it would not help."""
    lack = shortage_of(explained(DEVICES, prepared, wants("PGPU=3")))
    assert (lack.reason, lack.possible, lack.best and lack.best.free) == ("capacity", 1, 1)


def test_a_host_fails_by_a_condition_rather_than_by_all_of_a_class(prepared: Path) -> None:
    """n has enough, on a provider with the wrong trait; m has nothing: n is nearer."""
    fleet = world("""
        m           VCPU=1
        n           VCPU=1
          n_numa0   PCPU=12  CUSTOM_BAD
    """)
    explanation = explained(fleet, prepared, wants("PCPU=4", "!CUSTOM_BAD"))
    assert explanation.nearest is not None
    first, second = explanation.nearest
    assert (first.host.name, [lack.at for lack in first.lacks]) == ("n", ["/groups//required/0"])
    assert (second.host.name, second.lacks[0].at) == ("m", "/groups//resources/PCPU")


def test_a_class_is_lacked_for_another_reason_than_its_amount(prepared: Path) -> None:
    """The only provider of DISK_GB has enough, but meets neither condition; the root meets both.
    So it is not said that the disk is used."""
    fleet = world("cn1  VCPU=1  CUSTOM_NEW\n  disk  DISK_GB=9  CUSTOM_OLD")
    asking = question(groups={"_A": group("DISK_GB=4", required=items("!CUSTOM_OLD CUSTOM_NEW"))})
    shortage = shortage_of(explained(fleet, prepared, asking))
    assert shortage.reason == "conditions"
    assert shortage.unmet == ("/groups/_A/required/0", "/groups/_A/required/1")


def test_a_class_that_is_free_exactly_is_not_said_to_be_used(prepared: Path) -> None:
    """There is enough for either group, and not for both."""
    asking = question(groups={"_A": group("VCPU=4"), "_B": group("VCPU=4")})
    shortage = shortage_of(explained(world("cn1  VCPU=9(used:5)"), prepared, asking))
    assert (shortage.reason, shortage.asked) == ("conditions", 4)


def test_a_named_host_comes_first_however_much_it_lacks(prepared: Path) -> None:
    """cn2 misses one atom and cn1 two, but it is cn1 that the question names."""
    fleet = world("cn1  VCPU=3  MEMORY_MB=1\ncn2  VCPU=4  MEMORY_MB=9")
    asking = question(
        groups={"": group("VCPU=4 MEMORY_MB=8")}, host=QuestionHost(within=(("cn1",),))
    )
    explanation = explained(fleet, prepared, asking)
    assert names_of(explanation) == ["cn1", "cn2"]
    assert explanation.nearest is not None
    assert [near.is_named for near in explanation.nearest] == [True, False]
    assert [len(near.lacks) for near in explanation.nearest] == [2, 1]
