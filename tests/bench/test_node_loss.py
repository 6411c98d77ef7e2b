# SPDX-License-Identifier: Apache-2.0
"""What is told of a node's loss, from what the clients saw."""

from __future__ import annotations

from bench.node_loss import Story, samples_of


def test_only_a_write_that_was_sent_after_the_kill_shows_that_writes_go_on() -> None:
    """One that was under way already may have been done before it."""
    story = Story(begun_at=0.0)
    story.take(204, "a", sent_at=0.5, now=1.0, is_lost=False)
    story.killed_at = 2.0
    story.take(204, "b", sent_at=1.5, now=3.0, is_lost=False)
    assert story.recovered_at is None
    story.take(204, "c", sent_at=2.5, now=7.0, is_lost=False)
    story.take(204, "d", sent_at=7.0, now=7.1, is_lost=False)
    samples = samples_of(story)
    assert samples["from the kill to the first write"].values == [5.0]
    assert samples["longest time without a write"].values == [4.0]
    assert story.acknowledged == ["a", "b", "c", "d"]


def test_what_the_lost_node_answers_is_told_apart() -> None:
    """Its own acknowledgements are no sign that the others go on, and refusals go by status."""
    story = Story(begun_at=0.0)
    for at in (1.0, 1.2):
        story.take(204, "a", sent_at=at, now=at, is_lost=False)
    story.killed_at = 2.0
    story.take(204, "b", sent_at=2.1, now=2.2, is_lost=True)
    story.take(503, "c", sent_at=2.3, now=2.4, is_lost=True)
    story.take(0, "d", sent_at=2.3, now=2.4, is_lost=False)
    samples = samples_of(story)
    assert samples["from the kill to the first write"].values == []
    of_lost = samples["writes through the lost node, from the kill on"]
    assert (of_lost.values, dict(of_lost.failures)) == ([1], {503: 1})
    others = samples["writes through the other nodes"]
    assert (others.values, dict(others.failures)) == ([2], {0: 1})
    assert "c" not in story.acknowledged


def test_a_story_ends_a_while_after_writes_go_on() -> None:
    """And not before the kill, however long that takes."""
    story = Story(begun_at=0.0)
    assert not story.is_over(1000.0)
    story.killed_at = 1000.0
    assert not story.is_over(1030.0)
    assert story.is_over(1061.0)
    story.take(204, "a", sent_at=1005.0, now=1006.0, is_lost=False)
    assert not story.is_over(1008.0)
    assert story.is_over(1010.0)
