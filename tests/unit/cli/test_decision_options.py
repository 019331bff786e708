"""--require and --for on the commands that take them."""

from __future__ import annotations

import json
from pathlib import Path

import fairlap
import pytest
from command_line import output, refusal
from fairlap.errors import InvalidRequest
from fairlap.results.decision.required_measured import require_computed
from fairlap.results.decision.requirements import requirements_of
from fairlap.store.runs.run_file import RunFile, load_run_file, save_run
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole
from runs_side_by_side import a_quicker_run, a_slower_run, saved

ASKED = ("--require", "latency_p99<2ms, memory<4GB", "--for", "cloud")


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)
    with open_store() as store:
        return keep_whole(store, a_run())


def test_show_marks_who_qualifies_and_recommends(run_id: str) -> None:
    text = output("show", run_id, "--price", "1/h", *ASKED)
    document = json.loads(output("show", run_id, "--price", "1/h", *ASKED, "--json"))
    decision = document["decision"]
    assert {each["contestant"]: each["qualifies"] for each in decision["judged"]} == {"jax:fast": "yes", "torch": "no"}
    assert decision["recommended"] == ["jax:fast"]
    assert decision["weights"]["cost_per_1000_items"] == 0.4
    assert all(sentence in text for sentence in decision["sentences"])
    assert {row["currency"] for row in document["rows"]} == {"USD"}


@pytest.mark.usefixtures("run_id")
def test_without_the_options_there_is_no_decision() -> None:
    assert "decision" not in json.loads(output("show", "last", "--json"))


@pytest.mark.slow
def test_a_report_and_a_run_file_hold_the_decision(run_id: str, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    output("report", run_id, *ASKED, "-o", "page.html", "-o", "run.json")
    page = (tmp_path / "page.html").read_text()
    assert 'id="decision"' in page
    assert "does not qualify" in page
    stored: RunFile = load_run_file(tmp_path / "run.json")
    assert stored.decision
    assert stored.decision.use == "cloud"


@pytest.mark.usefixtures("run_id")
def test_across_decides_for_each_work_and_claims_nothing_between_currencies(tmp_path: Path) -> None:
    saved(tmp_path, slow=a_slower_run, quick=a_quicker_run)
    both = ("across", "slow.json", "quick.json", "--price", "slow.json=0.1/h", *ASKED)
    [found] = json.loads(output(*both, "--price", "quick.json=5/h", "--json"))["decisions"]
    judged = {(each["contestant"], each["run"]): each["qualifies"] for each in found["judged"]}
    assert judged["jax:fast", "quick"] == "yes"
    assert judged["torch", "slow"] == "no"
    assert found["recommended"] == ["jax:fast in quick"]
    cheap = json.loads(output(*both[:-4], "--price", "quick.json=5/h", *ASKED[2:], "--json"))["decisions"][0]
    assert cheap["recommended"] == ["jax:fast in slow"]  # fifty times as cheap by the hour
    [mixed] = json.loads(output(*both, "--price", "quick.json=5EUR/h", "--json"))["decisions"]
    assert mixed["recommended"] == ["jax:fast in quick"]


@pytest.mark.usefixtures("run_id")
def test_within_a_run_across_claims_only_what_the_verdict_of_the_row_shows(tmp_path: Path) -> None:
    save_run(tmp_path / "few.json", a_run(blocks=3))  # too few for a verdict
    saved(tmp_path, many=a_quicker_run)
    asked = ("--for", "cloud", "--price", "1/h", "--json")
    [few] = json.loads(output("across", "few.json", *asked))["decisions"]
    assert sorted(few["recommended"]) == ["jax:fast in few", "torch in few"]
    [many] = json.loads(output("across", "many.json", *asked))["decisions"]
    assert many["recommended"] == ["jax:fast in many"]
    assert "p99" not in many["sentences"][1]
    assert "whether p99 latency differs" in many["sentences"][2]


@pytest.mark.slow_but("show")
@pytest.mark.usefixtures("run_id")
@pytest.mark.parametrize("command", ["show", "across", "report"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--require", "latncy<1ms"], "E_REQUIRE"), (["--for", "moon"], "E_USE"), (["--require", ""], "")],
)
def test_what_cannot_be_read_is_refused(command: str, arguments: list[str], code: str) -> None:
    files = ["-o", "page.html"] if command == "report" else []
    if code:
        assert refusal(command, "last", *arguments, *files).code == code
    else:
        with pytest.raises(AssertionError):
            output(command, "last", *arguments, *files)


def test_compare_refuses_before_a_process_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    assert refusal("compare", "mlp", "--on", "numpy", "--require", "latency<1").code == "E_REQUIRE"
    assert refusal("compare", "mlp", "--on", "numpy", "--for", "moon").code == "E_USE"
    for limit in ("top1>=90%", "accuracy>=0.9", "latency<2ms,f1:logits>=0.5"):
        assert refusal("compare", "mlp", "--on", "numpy", "--require", limit).code == "E_QUANTITY"
        with pytest.raises(InvalidRequest) as raised:
            fairlap.compare("mlp", on=["numpy"], require=limit)
        assert raised.value.code == "E_QUANTITY"
    assert not (tmp_path / "runs.sqlite").exists()


@pytest.mark.parametrize(("metrics", "limit"), [(("top1:logits",), "top1>=90%"), (("f1", "top1"), "accuracy>=0.9")])
def test_a_limit_on_a_metric_that_is_computed_is_taken(metrics: tuple[str, ...], limit: str) -> None:
    require_computed(requirements_of(limit), metrics)
    with pytest.raises(InvalidRequest):
        require_computed(requirements_of(limit), metrics[:1] if len(metrics) > 1 else ("mse",))


def test_a_saved_decision_is_not_read_as_a_figure(tmp_path: Path) -> None:
    """A run file with one is a run file like any other."""
    save_run(tmp_path / "plain.json", a_run())
    output("report", tmp_path / "plain.json", *ASKED, "-o", tmp_path / "decided.json")
    assert output("across", tmp_path / "plain.json", "--json") == output(
        "across", tmp_path / "decided.json", "--json"
    ).replace("decided", "plain")
