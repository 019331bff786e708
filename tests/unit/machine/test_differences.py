"""What differs between two machines, and which of it may explain a difference between their figures."""

from __future__ import annotations

from fairlap.machine.differences import differences, differences_text, lasting, weighed

_NOW = {"memory": "16 GiB", "kernel": "6.1"}


def test_differences_are_told_in_words() -> None:
    before, after = {"kernel": "6.1", "cores": "2"}, {"kernel": "6.8", "cores": "2", "governor": "powersave"}
    told = [str(each) for each in differences(before, after)]
    assert told == ["governor not recorded -> powersave", "kernel 6.1 -> 6.8"]


def test_what_changes_from_minute_to_minute_is_told_only_when_asked_for() -> None:
    before, after = {"steal so far": "0.1%", "gpu 0 clock": "210 MHz"}, {"steal so far": "0.2%", "gpu 0 clock": "300"}
    assert differences(before, after) == []
    assert len(differences(before, after, passing=True)) == 2


def test_what_an_older_fairlap_did_not_look_for_is_counted_and_not_listed() -> None:
    told = differences_text({"kernel": "6.1"}, {"kernel": "6.8", "memory": "16 GiB", "swap": "none"})
    assert told == "between the machines:\n  kernel 6.1 -> 6.8\n  and 2 facts that only one of the runs recorded"


def test_alike_machines_have_no_difference() -> None:
    assert differences_text(_NOW, dict(_NOW)) == "between the machines: no difference is known"


def test_a_fingerprint_rests_on_what_lasts() -> None:
    passing = {"steal so far": "1%", "variable OMP_NUM_THREADS": "2", "package torch": "2.13.0", "git changes": "none"}
    assert lasting(_NOW | passing) == _NOW


def test_facts_that_only_a_newer_fairlap_records_cost_nothing() -> None:
    old, new = weighed({"kernel": "6.1"}, {"kernel": "6.1", "memory": "16 GiB", "variable OMP_A": "1"}, "cpu")
    assert old == new == {"kernel": "6.1"}


def test_a_variable_that_was_set_in_one_run_alone_is_a_difference() -> None:
    old, new = weighed(_NOW, _NOW | {"variable OMP_WAIT_POLICY": "passive"}, "cpu")
    assert [str(each) for each in differences(old, new)] == ["variable OMP_WAIT_POLICY not set -> passive"]


def test_a_governor_that_one_run_could_not_read_is_a_difference() -> None:
    old, new = weighed(_NOW | {"governor": "powersave"}, _NOW, "cpu")
    assert differences(old, new)[0].name == "governor"


def test_gpus_count_only_in_a_race_on_one_of_them() -> None:
    before = {"driver": "1", "gpu 0": "A100", "gpu 1": "H100", "gpu 1 power limit": "700 W"}
    after = {"driver": "2", "gpu 0": "B200", "gpu 1": "H200", "gpu 1 power limit": "600 W"}
    assert weighed(before, after, "cpu") == ({}, {})
    old, new = weighed(before, after, "cuda:1")
    assert old == {"driver": "1", "gpu": "H100", "gpu power limit": "700 W"}
    assert new == {"driver": "2", "gpu": "H200", "gpu power limit": "600 W"}
