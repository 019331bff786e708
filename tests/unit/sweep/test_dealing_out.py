"""Every block of a sweep is stored once, whatever becomes of machines, of this process and of the store."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import refusal
from fairlap.errors import InvalidRequest
from fairlap.launch.cluster.cluster import Node
from fairlap.race.planning.plan import Plan
from fairlap.store.errors import StoreError
from fairlap.store.file_store import Store
from fairlap.store.store import open_store
from fairlap.store.sweeps import Spread, Sweep, load_sweep, store_block
from fairlap.sweep import driver as driver_module
from fairlap.sweep import machines as machines_module
from fairlap.sweep.block import BlockReport, BlockTask
from fairlap.sweep.driver import Driver, begin
from fairlap.sweep.machine_here import Machine
from fairlap.sweep.machines import Machines
from fake_cluster import FakeCluster, a_machine, a_plan, measured

pytestmark = pytest.mark.sanitized


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open a file; a test of what is stored asks for a server too."""
    if getattr(request, "param", "file") == "server":
        request.getfixturevalue("shared_url")
        opened = open_store()
    else:
        opened = open_store(tmp_path / "runs.sqlite")
    with opened:
        yield opened


on_a_server_too = pytest.mark.parametrize("store", ["file", "server"], indirect=True)


def ignore(_line: str) -> None:
    return None


def sweep_on(
    store: Store, cluster: FakeCluster, spread: Spread = "alike", plans: dict[str, Plan] | None = None
) -> tuple[Driver, Machines]:
    machines = Machines(cluster, ignore)
    machines.wait_for_all()
    sweep = begin(store, plans or {"digits": a_plan()}, machines, spread, ignore)
    return Driver(sweep, cluster, machines, store, ignore), machines


def resumed_on(store: Store, cluster: FakeCluster, sweep: Sweep) -> Driver:
    machines = Machines(cluster, ignore)
    machines.wait_for_all()
    return Driver(sweep, cluster, machines, store, ignore)


def stored_once(store: Store, run: str, blocks: int = 20) -> bool:
    """All processes of all blocks, each once, with their samples, and the rows that follow."""
    loaded = store.load(run)
    processes = Counter((process.block, process.contestant) for process in loaded.processes)
    expected = {(block, name) for block in range(blocks) for name in ("torch", "jax:fast")}
    return (
        set(processes) == expected
        and set(processes.values()) == {1}
        and all(len(store.samples(run, *each)["wall_ns"]) == 50 for each in expected)
        and store.state(run) == "finished"
        and loaded.ended_early == ""
    )


def alike(count: int = 2) -> dict[str, Machine]:
    return {f"node-{number}": a_machine(f"machine-{number}") for number in range(count)}


@pytest.mark.slow_but("file")
@on_a_server_too
def test_alike_machines_share_the_blocks_of_one_run(store: Store) -> None:
    cluster = FakeCluster(alike(2))
    driver, _ = sweep_on(store, cluster)
    driver.run()
    [opened] = driver.runs
    assert stored_once(store, opened.run.run)
    assert Counter(node for node, _ in cluster.begun) == {"node-0": 10, "node-1": 10}
    assert sorted(block for _, block in cluster.begun) == list(range(20))
    assert set(opened.run.hosts.values()) == {"machine-0", "machine-1"}
    rows = store.rows(opened.run.run)
    assert {row.contestant: row.verdict for row in rows} == {"torch": "slower", "jax:fast": None}
    assert store.load(opened.run.run).wall_s == {"whole": 40.0, "frameworks": 30.0}


@pytest.mark.slow
def test_a_lost_node_costs_its_block_alone(store: Store) -> None:
    def lost_in_the_middle(node: Node, task: BlockTask) -> BlockReport | None:
        if node.id == "node-1" and len(cluster.begun) >= 10:
            cluster.lose("node-1")
            return None
        return measured(node, task)

    cluster = FakeCluster(alike(2), lost_in_the_middle)
    driver, _ = sweep_on(store, cluster)
    driver.run()
    [opened] = driver.runs
    assert stored_once(store, opened.run.run)
    begun = Counter(block for _, block in cluster.begun)
    assert sorted(begun) == list(range(20))
    assert begun.total() == 21
    assert driver.runs[0].losses.total() == 1


@pytest.mark.slow
def test_unlike_machines_have_runs_of_their_own_on_the_same_plan(store: Store) -> None:
    other = a_machine("machine-2", cores=(4, 5), facts={"cpu model": "Other 1", "cores": "2", "kernel": "6.1"})
    driver, _ = sweep_on(store, FakeCluster({**alike(2), "node-2": other}))
    driver.run()
    first, second = (each.run for each in driver.runs)
    assert stored_once(store, first.run)
    assert stored_once(store, second.run)
    assert set(first.hosts.values()) == {"machine-0", "machine-1"}
    assert set(second.hosts.values()) == {"machine-2"}
    assert store.load(second.run).machine["cpu model"] == "Other 1"
    plans = [store.load(run.run).plan for run in (first, second)]
    assert [block.order for block in plans[0].blocks] == [block.order for block in plans[1].blocks]
    assert [block.hash_seed for block in plans[0].blocks] == [block.hash_seed for block in plans[1].blocks]
    assert {core for block in plans[0].blocks for core in block.cores} == {0, 1}
    assert {core for block in plans[1].blocks for core in block.cores} == {4, 5}


@pytest.mark.parametrize("fact", ["package torch", "kernel", "variable OMP_WAIT_POLICY"])
def test_machines_with_other_software_or_settings_are_unlike(fact: str) -> None:
    one = a_machine("one")
    assert one.kind == a_machine("two").kind
    assert one.kind != a_machine("two", facts={**one.facts, fact: "other"}).kind
    assert one.kind != a_machine("two", cores=(0,)).kind
    assert one.kind != a_machine("two", niceness=15).kind
    assert one.kind == a_machine("two", facts={**one.facts, "steal so far": "3 %"}).kind


@pytest.mark.slow
def test_every_machine_runs_all_blocks_where_that_is_asked_for(store: Store) -> None:
    driver, _ = sweep_on(store, FakeCluster(alike(2)), "every")
    driver.run()
    assert [set(each.run.hosts.values()) for each in driver.runs] == [{"machine-0"}, {"machine-1"}]
    assert all(stored_once(store, each.run.run) for each in driver.runs)


def test_two_nodes_of_one_machine_take_turns(store: Store) -> None:
    machines = {node: a_machine("same", host="one host") for node in ("node-0", "node-1")}
    driver, _ = sweep_on(store, FakeCluster(machines))  # the cluster asserts it
    driver.run()
    assert stored_once(store, driver.runs[0].run.run)


@pytest.mark.slow_but("file")
@on_a_server_too
def test_an_interrupted_sweep_resumes_with_what_is_missing(store: Store) -> None:
    cluster = FakeCluster(alike(2))
    driver, machines = sweep_on(store, cluster)
    ended = 0

    def interrupt(*_: object) -> None:
        nonlocal ended
        ended += 1
        if ended == 7:
            raise KeyboardInterrupt

    interrupted = Driver(load_sweep(store, "last"), cluster, machines, store, ignore, interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.run()
    left = load_sweep(store, driver.sweep.id)
    assert store.state(left.runs[0].run) == "interrupted"
    done = set(left.runs[0].hosts)
    assert 7 <= len(done) <= 8
    assert {process.block for process in store.load(left.runs[0].run).processes} == done
    later = FakeCluster({"another": a_machine("machine-9")})
    resumed_on(store, later, left).run()
    assert sorted(block for _, block in later.begun) == sorted(set(range(20)) - done)
    assert stored_once(store, left.runs[0].run)


@pytest.mark.slow_but("file")
@on_a_server_too
def test_a_sweep_whose_rows_are_missing_gets_them_when_it_is_resumed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, _ = sweep_on(store, FakeCluster(alike(1)))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver_module, "end_run_of_sweep", killed)
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    monkeypatch.undo()
    left = load_sweep(store, "last")
    assert left.runs[0].missing == []
    cluster = FakeCluster({})
    resumed_on(store, cluster, left).run()
    assert cluster.begun == []
    assert stored_once(store, left.runs[0].run)


@on_a_server_too
def test_a_block_is_stored_once_although_two_processes_drive_the_sweep(store: Store) -> None:
    driver, _ = sweep_on(store, FakeCluster(alike(1)))
    other = resumed_on(store, FakeCluster(alike(1)), load_sweep(store, "last"))
    driver.run()
    before = store.load(driver.runs[0].run.run)
    other.run()
    after = store.load(driver.runs[0].run.run)
    assert stored_once(store, driver.runs[0].run.run)
    assert [process.headline_ns for process in after.processes] == [process.headline_ns for process in before.processes]


@pytest.mark.slow_but("file")
@on_a_server_too
def test_what_is_stored_of_a_block_is_not_replaced(store: Store) -> None:
    driver, _ = sweep_on(store, FakeCluster(alike(1)))
    run, plan = driver.runs[0].run.run, driver.runs[0].run.plan
    report = measured(Node("x", "x"), BlockTask(plan, 3))
    assert store_block(store, run, 3, "machine-0", report.processes, {})
    assert not store_block(store, run, 3, "machine-1", report.processes[:1], {})
    assert load_sweep(store, "last").runs[0].hosts == {3: "machine-0"}
    assert len(store.load(run).processes) == 2


def test_a_block_that_takes_its_node_down_three_times_is_given_up(store: Store) -> None:
    def fatal(node: Node, task: BlockTask) -> BlockReport | None:
        if task.block == 5:
            cluster.crash(node.id)
            return None
        return measured(node, task)

    cluster = FakeCluster(alike(2), fatal)
    driver, _ = sweep_on(store, cluster)
    driver.run()
    assert driver.runs[0].run.missing == [5]
    assert "block 5" in driver.runs[0].why_incomplete
    assert Counter(block for _, block in cluster.begun)[5] == 3
    assert store.state(driver.runs[0].run.run) == "interrupted"


def test_a_machine_that_cannot_run_a_plan_leaves_it_to_the_others(store: Store) -> None:
    def refusing(node: Node, task: BlockTask) -> BlockReport:
        missing = BlockReport(code="E_SOURCE", message="model.onnx is not there")
        return missing if node.id == "node-0" else measured(node, task)

    cluster = FakeCluster(alike(2), refusing)
    driver, _ = sweep_on(store, cluster)
    driver.run()
    assert stored_once(store, driver.runs[0].run.run)
    assert [node for node, _ in cluster.begun].count("node-0") == 1


def test_a_plan_that_no_machine_can_run_is_incomplete_with_the_reason(store: Store) -> None:
    refused = BlockReport(code="E_SOURCE", message="model.onnx is not there")
    driver, _ = sweep_on(store, FakeCluster(alike(2), lambda *_: refused))
    driver.run()
    assert driver.done == 0
    assert "model.onnx" in driver.runs[0].why_incomplete


@pytest.mark.slow_but("change0")
@pytest.mark.parametrize("change", [{"fairlap": "0.0.1"}, {"python": "3.2.1"}])
def test_a_node_with_another_version_is_left_out_in_one_line(store: Store, change: dict[str, str]) -> None:
    cluster = FakeCluster({**alike(1), "node-1": a_machine("old", **change)})
    driver, machines = sweep_on(store, cluster)
    driver.run()
    assert set(machines.left_out) == {"old"}
    assert next(iter(change.values())).rpartition(".")[0] in machines.left_out["old"]
    assert {node for node, _ in cluster.begun} == {"node-0"}


def test_without_a_machine_that_has_the_cores_nothing_begins(store: Store) -> None:
    cluster = FakeCluster({**alike(1), "node-1": a_machine("large", cores=(0, 1, 2, 3))})
    driver, _ = sweep_on(store, cluster, plans={"digits": a_plan(threads=4)})
    driver.run()
    assert {node for node, _ in cluster.begun} == {"node-1"}
    with pytest.raises(InvalidRequest) as refused:
        sweep_on(store, FakeCluster(alike(2)), plans={"digits": a_plan(threads=3)})
    assert refused.value.code == "E_SWEEP"


def test_each_refusal_is_reported_once(store: Store) -> None:
    machines = Machines(FakeCluster(alike(1)), ignore)
    machines.wait_for_all()
    reported: list[str] = []
    many = {"digits": a_plan(threads=3), "more": a_plan(threads=4)}
    with pytest.raises(InvalidRequest) as refused:
        begin(store, many, machines, "alike", reported.append)
    assert len({*reported, str(refused.value)}) == len(reported) + 1 == len(many)
    reported.clear()
    begin(store, {"few": a_plan(), **many}, machines, "alike", reported.append)
    assert len(set(reported)) == len(reported) == len(many)


def test_a_machine_that_joins_helps_if_it_is_alike(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "_LOOK_EVERY_S", 0.0)

    def joined_by_others(node: Node, task: BlockTask) -> BlockReport:
        if len(cluster.begun) == 5:
            cluster.add("late", a_machine("machine-7"))
            cluster.add("unlike", a_machine("other", cores=(0,)))
        return measured(node, task)

    cluster = FakeCluster(alike(1), joined_by_others)
    driver, _ = sweep_on(store, cluster)
    driver.run()
    assert stored_once(store, driver.runs[0].run.run)
    assert {node for node, _ in cluster.begun} == {"node-0", "late"}


def test_what_cannot_be_written_at_once_is_written_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = 5

    def full(*arguments: object) -> bool:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise StoreError("the disk is full")
        return store_block(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(driver_module, "store_block", full)
    cluster = FakeCluster(alike(2))
    driver, _ = sweep_on(store, cluster)
    driver.run()
    assert stored_once(store, driver.runs[0].run.run)
    assert len(cluster.begun) == 20


def test_a_store_that_stays_full_is_an_error_at_the_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise StoreError("the disk is full")

    monkeypatch.setattr(driver_module, "store_block", full)
    driver, _ = sweep_on(store, FakeCluster(alike(2)))
    with pytest.raises(StoreError):
        driver.run()
    assert driver.done == 0


def test_a_node_that_does_not_answer_is_left_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes whenever the clock is read, so that only the mute can be late."""
    seconds = itertools.count()
    monkeypatch.setattr(machines_module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(driver_module, "_LOOK_EVERY_S", 0.0)
    cluster = FakeCluster({**alike(1), "mute": a_machine("mute")}, mute=("mute",))
    machines = Machines(cluster, ignore)
    machines.wait_for_all()
    driver = Driver(begin(store, {"digits": a_plan()}, machines, "alike", ignore), cluster, machines, store, ignore)
    driver.run()
    assert set(machines.left_out) == {"mute"}
    assert {node for node, _ in cluster.begun} == {"node-0"}
    cluster.mute = ("node-0", "mute")
    left = begin(store, {"digits": a_plan()}, machines, "alike", ignore)
    silent = Machines(cluster, ignore)
    unable = Driver(left, cluster, silent, store, ignore)
    unable.run()
    assert unable.done == 0


def test_several_requests_are_run_one_after_the_other(store: Store) -> None:
    cluster = FakeCluster(alike(2))
    driver, _ = sweep_on(store, cluster, plans={"digits": a_plan(4), "more": a_plan(3)})
    driver.run()
    assert [(each.run.request, len(each.run.hosts)) for each in driver.runs] == [("digits", 4), ("more", 3)]
    assert sorted(block for _, block in cluster.begun) == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.slow_but("file")
@on_a_server_too
def test_a_run_of_a_sweep_is_not_resumed_by_a_race(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    if type(store) is Store:
        monkeypatch.setenv("FAIRLAP_STORE", str(store.path))
    driver, _ = sweep_on(store, FakeCluster(alike(1)))
    refused = refusal("compare", "--resume", driver.runs[0].run.run)
    assert refused.code == "E_RESUME"
    assert driver.sweep.id in str(refused)
    assert load_sweep(store, "last").runs[0].hosts == {}


@pytest.mark.slow_but("file")
@on_a_server_too
def test_a_sweep_is_found_by_a_beginning_of_its_id_and_its_runs_can_be_removed(store: Store) -> None:
    driver, _ = sweep_on(store, FakeCluster(alike(1)))
    sweep, run = driver.sweep.id, driver.runs[0].run.run
    assert load_sweep(store, sweep[:-1]).id == load_sweep(store, "last").id == sweep
    for name in ("", "2000", "nothing"):
        with pytest.raises(InvalidRequest) as refused:
            load_sweep(store, name)
        assert refused.value.code == "E_SWEEP"
    store.remove(run)
    with pytest.raises(InvalidRequest) as refused:
        load_sweep(store, sweep)
    assert refused.value.code == "E_SWEEP"
