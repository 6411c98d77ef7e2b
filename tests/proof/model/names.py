# SPDX-License-Identifier: Apache-2.0
"""The names in histories: few, so that requests often name existing objects.

Names of providers, consumers and aggregates stand for uuids (`tests.worlds`). Generations are drawn
as words: `right`, `stale` (one less, or "it is new") and `ahead`.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from tests.candidates.strategies import AGGREGATES, CLASSES, TRAITS
from tests.proof.model.plain_model import KEEP, Record
from tests.worlds import SHARING_TRAIT

PROVIDERS: Final = ("p1", "p2", "p3", "p4", "p5")
CONSUMERS: Final = ("c1", "c2", "c3", "c4")
CUSTOM_CLASSES: Final = ("CUSTOM_VF", "CUSTOM_NEW")
CUSTOM_TRAITS: Final = ("CUSTOM_X", "CUSTOM_Y")

#: Below each of these something about writing is different from above it.
MINORS: Final = (39, 39, 39, 39, 38, 37, 36, 34, 33, 30, 28, 27, 26, 25, 22, 19, 18, 14, 13)
OLD_MINORS: Final = (12, 11, 8, 7, 6, 5, 4, 1, 0)

providers = st.sampled_from(PROVIDERS)
consumers = st.sampled_from(CONSUMERS)
classes = st.sampled_from((*CLASSES, "VCPU", "CUSTOM_NEW"))
traits = st.sampled_from((*TRAITS, SHARING_TRAIT))
aggregates = st.sampled_from(AGGREGATES)
custom_classes = st.sampled_from(CUSTOM_CLASSES)
custom_traits = st.sampled_from(CUSTOM_TRAITS)
names = st.sampled_from(("one", "two", "three", "four", "five", "six"))
projects = st.sampled_from(("red", "blue"))
users = st.sampled_from(("ann", "bob"))
types = st.sampled_from(("INSTANCE", "MIGRATION"))
seen_words = st.sampled_from(("right",) * 8 + ("stale", "ahead"))

records = st.builds(
    Record,
    total=st.integers(1, 8),
    reserved=st.sampled_from((0, 0, 0, 1, 2, 9)),
    min_unit=st.sampled_from((1, 1, 1, 2)),
    max_unit=st.sampled_from((8, 8, 4)),
    step_size=st.sampled_from((1, 1, 1, 2)),
    allocation_ratio=st.sampled_from((1.0, 1.0, 1.0, 0.5, 1.5, 0.29)),
)
stocks = st.dictionaries(classes, records, max_size=3)
amounts = st.dictionaries(classes, st.sampled_from((1, 1, 1, 2, 2, 3, 4)), min_size=1, max_size=2)
wishes = st.dictionaries(providers, amounts, min_size=1, max_size=2)

#: A parent as a request may give it: left out, none, or a provider.
parents = st.just(KEEP) | st.none() | providers


def minors(since: int) -> st.SearchStrategy[int]:
    """Microversions that have a feature, and sometimes one that has not."""
    all_minors = (*MINORS, *OLD_MINORS)
    known = [minor for minor in all_minors if minor >= since]
    unknown = [minor for minor in all_minors if minor < since]
    return st.sampled_from(known * 3 + unknown[:1])


#: What a word for a generation adds to the right one.
OFF_BY: Final = {"right": 0, "stale": -1, "ahead": 1}
