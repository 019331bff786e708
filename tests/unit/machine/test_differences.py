"""What differs between two machines, and which of it may explain a difference between their results."""

from __future__ import annotations

from fairlap.machine.differences import comparable_facts, differences, differences_text, lasting

_NOW = {"memory": "16 GiB", "kernel": "6.1"}


def test_a_difference_names_both_values() -> None:
    before, after = {"kernel": "6.1", "cores": "2"}, {"kernel": "6.8", "cores": "2", "governor": "powersave"}
    texts = [str(each) for each in differences(before, after)]
    assert texts == ["governor not recorded -> powersave", "kernel 6.1 -> 6.8"]


def test_facts_of_the_moment_differ_only_on_request() -> None:
    before, after = {"steal so far": "0.1%", "gpu 0 clock": "210 MHz"}, {"steal so far": "0.2%", "gpu 0 clock": "300"}
    assert differences(before, after) == []
    assert len(differences(before, after, momentary=True)) == 2


def test_facts_that_an_older_fairlap_did_not_look_for_are_only_counted() -> None:
    _, listed, counted = differences_text({"kernel": "6.1"}, _NOW | {"kernel": "6.8", "swap": "none"}).splitlines()
    assert (listed, " 2 facts " in counted) == ("  kernel 6.1 -> 6.8", True)


def test_a_fingerprint_depends_only_on_lasting_facts() -> None:
    passing = {"steal so far": "1%", "variable OMP_NUM_THREADS": "2", "package torch": "2.13.0", "git changes": "none"}
    assert lasting(_NOW | passing) == _NOW


def test_facts_that_only_a_newer_fairlap_records_are_ignored() -> None:
    old, new = comparable_facts({"kernel": "6.1"}, {"kernel": "6.1", "memory": "16 GiB", "variable OMP_A": "1"}, "cpu")
    assert old == new == {"kernel": "6.1"}


def test_a_variable_that_only_one_run_set_is_a_difference() -> None:
    old, new = comparable_facts(_NOW, _NOW | {"variable OMP_WAIT_POLICY": "passive"}, "cpu")
    assert [str(each) for each in differences(old, new)] == ["variable OMP_WAIT_POLICY not set -> passive"]


def test_a_governor_that_one_run_could_not_read_is_a_difference() -> None:
    old, new = comparable_facts(_NOW | {"governor": "powersave"}, _NOW, "cpu")
    assert differences(old, new)[0].name == "governor"


def test_a_gpu_counts_only_in_a_race_on_it() -> None:
    before = {"driver": "1", "gpu 0": "A100", "gpu 1": "H100", "gpu 1 power limit": "700 W"}
    after = {"driver": "2", "gpu 0": "B200", "gpu 1": "H200", "gpu 1 power limit": "600 W"}
    assert comparable_facts(before, after, "cpu") == ({}, {})
    old, new = comparable_facts(before, after, "cuda:1")
    assert old == {"driver": "1", "gpu": "H100", "gpu power limit": "700 W"}
    assert new == {"driver": "2", "gpu": "H200", "gpu power limit": "600 W"}
