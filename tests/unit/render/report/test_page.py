import json
import re

import pytest
from fairlap.meters import disturbances
from fairlap.meters.memory import Memory
from fairlap.race.run import Run
from fairlap.race.stopping import DECIDED
from fairlap.render.files import markdown_file
from fairlap.render.report.page import page_of
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.request.fields.training import Sgd, Training
from fairlap.results.flat_row import columns
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from html_read import ReadHtml
from msgspec import structs
from runs_to_show import ENDING, HOSTILE, SCRIPT, WRONG, run_of, samples


def data_of(page: ReadHtml) -> dict[str, object]:
    found: dict[str, object] = json.loads(page.scripts[0])
    return found


def charts_in(page: ReadHtml) -> set[str | None]:
    return {each["data-chart"] for each in page.named("div") if "data-chart" in each}


@pytest.fixture(scope="module")
def plain() -> ReadHtml:
    return ReadHtml(page_of(results_of(run_of(), "r-1")))


def test_names_messages_and_settings_that_are_html_stay_text() -> None:
    text = page_of(results_of(run_of(HOSTILE), "<b>id</b>", samples=samples))
    page = ReadHtml(text)
    assert len(page.named("script")) == 3  # the data and two programs of our own
    assert page.named("img") == []
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert SCRIPT in page.text
    assert ENDING in page.text
    assert "<b>id</b>" in page.text
    assert data_of(page)["contestants"] == list(HOSTILE)


def test_the_page_asks_for_nothing_from_elsewhere(plain: ReadHtml) -> None:
    assert plain.named("link") == []
    assert not any("src" in attributes for _, attributes in plain.elements)
    assert {each["href"] for each in plain.named("a")} == {"#answer"}


def test_only_our_own_scripts_may_run(plain: ReadHtml) -> None:
    [policy] = [each["content"] for each in plain.named("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    [scripts] = re.findall(r"script-src ([^;]*);", policy)
    assert "unsafe" not in scripts


def test_the_answer_is_the_first_thing_reported(plain: ReadHtml) -> None:
    text = plain.text
    assert text.index("torch is the fastest") < text.index("Ranked")
    assert "torch is 2.0" in text
    assert "times as fast as jax" in text


def test_who_did_other_work_is_shown_with_the_reason_and_not_ranked(plain: ReadHtml) -> None:
    text = plain.text
    assert "Not ranked" in text
    assert "disqualified in 1 of" in text
    assert "its cosine is 0.1" in text
    assert WRONG in text


def test_machine_blocks_warnings_and_settings_are_reported(plain: ReadHtml) -> None:
    text = plain.text
    for each in ("Imaginary 9000", "8 blocks used", "torch complained", "threads 1, precision fp32"):
        assert each in text


def test_the_command_that_draws_the_same_plan_is_reported() -> None:
    page = ReadHtml(page_of(results_of(run_of(batches=(8,)), "r")))
    assert "fairlap compare mlp --on torch,jax,wrong --batch 8 --mode infer" in page.text
    assert "--seed 3" in page.text


def test_the_command_names_the_data_that_is_learnt() -> None:
    run = run_of(batches=(8,))
    training, data = Training(Sgd(lr=0.1)), TrainingData("pets.csv:kind", "/data/pets.csv", "kind", 0.25, "0123abcd")
    [work] = run.plan.works
    learnt = structs.replace(work, mode="train", training=training, train_on=data)
    run.plan = structs.replace(run.plan, works=(learnt,), to_score=0.9, most_epochs=5)
    for process in run.processes:
        process.work_id = learnt.id
    text = ReadHtml(page_of(results_of(run, "r"))).text
    assert "--to-score 0.9 --epochs 5 --train-on pets.csv:kind --fraction 0.25" in text


def test_a_plan_that_no_command_line_draws_is_repeated_from_the_plan_itself() -> None:
    run = run_of(batches=(8,))
    run.plan = structs.replace(run.plan, seed=run.plan.seed + 1)
    text = ReadHtml(page_of(results_of(run, "r"))).text
    assert "fairlap compare mlp" not in text
    assert '"data_seed": 0' in text


def test_several_batches_have_one_command(plain: ReadHtml) -> None:
    assert "fairlap compare mlp --on torch,jax,wrong --batch 4,8 --mode infer" in plain.text


def test_charts_of_samples_are_left_out_with_a_sentence_when_none_were_kept(plain: ReadHtml) -> None:
    assert not {"samples", "sample_curves"} & charts_in(plain)
    assert "needs raw samples" in plain.text


def test_charts_of_samples_are_there_when_samples_are() -> None:
    assert {"samples", "sample_curves"} <= charts_in(ReadHtml(page_of(results_of(run_of(), "r", samples=samples))))


def test_several_batches_make_a_sweep_and_one_does_not(plain: ReadHtml) -> None:
    assert "sweep" in charts_in(plain)
    assert "sweep" not in charts_in(ReadHtml(page_of(results_of(run_of(batches=(8,)), "r"))))


def test_cost_is_there_only_with_a_price(plain: ReadHtml) -> None:
    assert "cost" not in charts_in(plain)
    assert "energy_j" not in charts_in(plain)
    assert "cost" in charts_in(ReadHtml(page_of(results_of(run_of(), "r", price=price_given("1.10 EUR/h")))))


def test_every_column_of_the_row_has_its_place_in_the_table_of_every_figure(plain: ReadHtml) -> None:
    figures = data_of(plain)["figures"]
    assert isinstance(figures, dict)
    shown = {each["name"] for each in figures["described"]} | {"contestant", "conditions"}
    assert {column.name for column in columns()} - shown == {"run", "recorded_at", "work_id", "absent"}


def test_ratios_are_reported_against_the_baseline_that_was_asked_for() -> None:
    assert "against jax" in ReadHtml(page_of(results_of(run_of(), "r", baseline="jax"))).text


def test_a_race_in_which_nothing_ended_still_makes_a_page() -> None:
    run = run_of()
    page = ReadHtml(page_of(results_of(Run(run.plan, [], {}, {}, ended_early="the disk is full"), "r")))
    assert "Nothing was measured" in page.text
    assert "processes: the disk is full." in page.text


def test_a_race_that_decided_everything_has_no_warning() -> None:
    run = run_of()
    page = page_of(results_of(Run(run.plan, run.processes, {}, {}, ended_early=DECIDED), "r"))
    assert DECIDED in ReadHtml(page).text
    assert 'class="note"' not in page.partition('id="answer"')[2].partition(DECIDED)[0]


def test_a_race_in_which_everyone_crashed_says_why_there_is_no_verdict() -> None:
    run = run_of()
    for process in run.processes:
        process.outcome, process.message, process.timings, process.errors, process.memory = (
            "crash",
            "SIGSEGV",
            {},
            [],
            Memory(),
        )
    page = ReadHtml(page_of(results_of(run, "r")))
    assert "No verdict" in page.text
    assert "crash: SIGSEGV" in page.text
    assert charts_in(page) == set()


def test_a_page_of_one_contestant_has_no_winner() -> None:
    for batches in ((4,), (4, 8)):
        page = ReadHtml(page_of(results_of(run_of(("torch",), batches=batches), "r")))
        assert "is the fastest" not in page.text
        assert "No verdict" not in page.text


def test_a_busy_machine_is_reported_beside_the_answer_and_in_every_row() -> None:
    run = run_of(batches=(4,))
    for process in run.processes:
        process.machine[disturbances.WAITED] = 0.3
    text = ReadHtml(page_of(results_of(run, "r"))).text
    assert "other processes took cores" in text.lower()
    assert "[W_BUSY_MACHINE]" in text
    rows = results_of(run, "r").rows
    assert all(row.warnings[0].code == "W_BUSY_MACHINE" for row in rows)
    assert markdown_file.encode(rows).decode().count("other processes took cores") == len(
        {row.conditions for row in rows}
    )


def test_too_few_blocks_show_neither_a_difference_nor_none() -> None:
    assert "Too few blocks" in ReadHtml(page_of(results_of(run_of(("torch", "jax"), batches=(4,), blocks=3), "r"))).text
