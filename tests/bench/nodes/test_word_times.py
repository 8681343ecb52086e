"""Two clocks: a pause of node 0 is no silence of the others, and who spoke before it has denied nothing since."""

from __future__ import annotations

from ncclcheck.bench.nodes.word_times import WordTimes


def listening(*looks_s: float) -> WordTimes:
    """Node 0 looks at these times; ticket 1 speaks at the first one."""
    times = WordTimes(0.0)
    for number, look_s in enumerate(looks_s):
        times.look(look_s)
        if not number:
            times.hear(1)
    return times


def test_without_a_pause_both_clocks_run_alike_but_for_the_time_of_a_look() -> None:
    times = listening(0.1, 0.2, 0.3, 0.4)
    assert round(times.silence_s(1), 3) == 0.3
    assert round(times.unsaid_s(1), 3) == 0.4
    assert round(times.silence_s(2), 3) == round(times.unsaid_s(2), 3) == 0.4  # it never spoke


def test_a_pause_of_node_0_is_no_silence_and_no_word_either() -> None:
    times = listening(0.1, 0.2, 5.2)
    assert round(times.silence_s(1), 3) == 0.6
    assert round(times.unsaid_s(1), 3) == 5.2


def test_a_word_that_is_found_just_after_a_pause_may_be_from_before_it() -> None:
    times = listening(0.1, 0.2, 5.2)
    times.hear(1)
    assert round(times.unsaid_s(1), 3) == 5.0
    times.look(5.3)
    times.hear(1)
    assert (round(times.silence_s(1), 3), round(times.unsaid_s(1), 3)) == (0.0, 5.1)
    for look_s in (5.5, 5.7, 5.8):
        times.look(look_s)
    times.hear(1)
    assert round(times.unsaid_s(1), 3) == 0.1


def test_where_every_look_takes_long_a_word_is_from_after_the_look_before() -> None:
    times = listening(1.0, 2.0, 3.0)
    times.hear(1)
    assert times.unsaid_s(1) == 1.0
