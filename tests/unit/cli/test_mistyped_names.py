"""A mistyped contestant, framework, option or callable is answered with the nearest one, in every command."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import error_code, here, invoke, refusal
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.toml_file import read_toml
from fairlap.scenarios.callables.untrusted.referee_code import imported
from fairlap.store.store import open_store
from runs_for_rows import a_run
from runs_in_store import keep_whole
from small_transformer import onnx_file

LABELLED = ("--inputs", "x.npy", "--labels", "y.npy", "--metric", "top1")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)
    with open_store() as store:
        keep_whole(store, a_run())


@pytest.mark.parametrize(
    ("files", "meant"),
    [
        (("race.toml", "rep.html"), "did you mean race.toml?"),
        (("other.toml", "rep.html"), "other.toml"),
        (("rep.html",), "no request file"),
    ],
)
def test_a_mistyped_request_file_is_answered_with_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in files:
        (tmp_path / file).touch()
    message = str(refusal("compare", "race.tmol"))
    assert meant in message
    assert "rep.html" not in message


@pytest.mark.parametrize("on", ["torch,", "torch, jax ,"])
def test_a_space_after_a_comma_is_named_where_the_shell_cuts_the_list_there(on: str) -> None:
    done = here("compare", "mlp", "--on", on)
    assert (done.returncode, error_code(done)) == (2, "E_CONTESTANT")
    assert repr(on) in done.stderr
    assert "spaces" in done.stderr


def test_spaces_after_commas_are_left_out_within_one_argument() -> None:
    assert [each.text for each in Contestants("torch, jax")] == ["torch", "jax"]


def test_an_argument_of_a_few_values_is_named_and_its_values_are_listed() -> None:
    done = here("completion", "bsh")
    assert (done.returncode, error_code(done)) == (2, "E_REQUEST")
    assert "'SHELL'" in done.stderr
    assert "{" not in done.stderr
    assert "bash, zsh, fish" in done.stderr


@pytest.mark.parametrize("limit", ["-1", "0", "5"])
def test_a_limit_of_memory_below_what_a_worker_needs_is_answered_with_that(limit: str) -> None:
    done = here("compare", "mlp", "--on", "torch", "--memory-limit", limit)
    assert (done.returncode, error_code(done)) == (2, "E_REQUEST")
    assert "128 MiB" in done.stderr


@pytest.mark.slow_but(first=16)
@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("compare", "mlp", "--on", "trch"), "torch"),
        (("compare", "mlp", "--on", "torch:compil"), "compile"),
        (("compare", "mlp", "--on", "torch", "--baseline", "trch"), "torch"),
        (("load", "mlp", "--on", "trch", "--p99", "5ms"), "torch"),
        (("collectives", "--on", "trch"), "torch"),
        (("mistakes", "--on", "trch"), "torch"),
        (("mistakes", "shaps", "--on", "numpy"), "shapes"),
        (("self-test", "mlp", "--on", "trch"), "torch"),
        (("choose", "a.onnx", "b.onnx", "--on", "tensrflow", *LABELLED), "tensorflow"),
        (("convert", "mlp", "--for", "trch"), "torch"),
        (("history", "mlp", "--on", "trch"), "torch"),
        (("history", "mlpp"), "mlp"),
        (("runs", "--on", "trch"), "torch"),
        (("runs", "--on", "torch,jax:fst"), "jax:fast"),
        (("runs", "--model", "mlpp"), "mlp"),
        (("gate", "last", "--baseline", "trch"), "torch"),
        (("gate", "last", "--baseline", "torch", "--candidate", "jax:fst"), "jax:fast"),
        (("rerun", "last", "--baseline", "trch"), "torch"),
        (("time", "math:snh"), "sinh"),
        (("compare", "mlp", "--on", "torch", "--mode", "Inferr"), "infer"),
        (("compare", "mlp", "--on", "TORCH"), "torch"),
        (("compare", "mlp", "--on", "torch,onnxruntime:spining=on"), "spinning"),
        (("compare", "mlp", "--on", "torch,onnxruntime:spinning=oof"), "off"),
        (("compare", "mlp", "--on", "torch:COMPILE"), "compile"),
        (("compare", "mlp", "--on", "torch", "--precision", "FP32"), "fp32"),
        (("compare", "mlp", "--on", "torch", "--fresh", "evry"), "every"),
        (("compare", "mlp", "--on", "torch", "--conditions", "As-Found"), "as-found"),
        (("compare", "mlp", "--on", "torch", "--mode", "train", "--optimizer", "adam:lr=0.1"), "adamw"),
        (("compare", "r.onnx", "--on", "torch", "--inputs", "x.npy", "--labels", "y.npy", "--metric", "chrF"), "chrf"),
        (
            ("compare", "r.onnx", "--on", "torch", "--inputs", "x.npy", "--labels", "y.npy", "--metric", "ngcd@5"),
            "ndcg@5",
        ),
        (("load", "mlp", "--on", "torch", "--scenario", "Sever"), "server"),
        (("time", "math:sin", "--cache", "warn"), "warm"),
        (("time", "math:sin", "math:cos", "--baseline", "math:con"), "math:cos"),
        (("compare", "mlp", "--on", "torch@dcoker=IMAGE"), "torch@docker=IMAGE"),
        (("compare", "mlp", "--on", "torch@pyhton=3.13:compile"), "torch:python=3.13:compile"),
        (("compare", "mlp", "--on", "torch=2.13.0"), "torch==2.13.0"),
        (("compare", "mlp", "--on", "torch@2.13"), "torch==2.13"),
        (("compare", "mlp", "--on", "torch:wiht=numpy==2.1.0"), "with"),
        (("compare", "mlp", "--on", "torch", "--device", "cdua:0"), "cuda:0"),
        (("compare", "mlp", "--on", "torch", "--device", "gpu:1"), "cuda:1"),
        (("compare", "mlp", "--on", "torch", "--device", "CPU"), "cpu"),
        (("compare", "mlp", "--on", "torch", "-o", "x.htlm"), ".html"),
        (
            ("compare", "mnist", "--on", "torch", "--mode", "train", "--to-score", "90%", "--train-on", "diigts"),
            "digits",
        ),
        (("compare", "vit:smal", "--on", "torch"), "vit:small"),
        (("compare", "mlp", "--on", "torch", "--for", "edg"), "edge"),
        (
            ("compare", "callable", "--on", "python:call=math.sin", "--reference", "math:snh", "--inputs", "math:sin"),
            "sinh",
        ),
        (("show", "lst"), "last"),
        (("show", "last", "--for", "edg"), "edge"),
        (("explain", "E_REQEST"), "E_REQUEST, E_PULL_REQUEST, E_REQUIRE"),
        (("compair",), "compare"),
        (("list", "prces"), "prices"),
        (("runs", "remve", "last"), "remove"),
    ],
)
def test_the_nearest_name_is_suggested(arguments: tuple[str, ...], meant: str) -> None:
    found = invoke(*arguments)
    text = str(found.exception) if isinstance(found.exception, Exception) else found.output
    assert f"did you mean {meant}?" in text


def test_a_mistyped_choice_is_answered_in_request_files_and_in_python_too(tmp_path: Path) -> None:
    (tmp_path / "race.toml").write_text('models = ["mlp"]\ncontestants = ["torch"]\nmode = "Inferr"\n')
    with pytest.raises(InvalidRequest) as in_file:
        read_toml(tmp_path / "race.toml", RaceRequest, "the request")
    with pytest.raises(InvalidRequest) as in_python:
        plan_of(RaceRequest(models=("mlp",), contestants=Contestants("torch"), mode="Inferr"))  # type: ignore[arg-type]
    for refused in (in_file, in_python):
        assert "did you mean infer?" in str(refused.value)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    "arguments", [("runs", "--on", "torch,jax:fast", "--since", "2100-01-01"), ("runs", "--on", "zz")]
)
def test_where_no_name_is_near_none_is_suggested(arguments: tuple[str, ...]) -> None:
    found = invoke(*arguments)
    assert "no such run" in found.output
    assert "did you mean" not in found.output


@pytest.mark.slow_but("./net.py", "models/net.py", "my-net")
@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("net.py:make", "net:make"),
        ("./net.py:make", "net:make"),
        ("models/net.py:Made.now", "net:Made.now in the folder models"),
        ("./my-net.py:make", "rename"),
        ("my-net.py:make", "rename"),
        ("none.py:make", "no file none.py"),
        ("./none.py:make", "no file ./none.py"),
    ],
)
def test_a_file_in_the_place_of_a_module_is_answered_with_the_module(model: str, meant: str) -> None:
    Path("models").mkdir()
    for name in ("net.py", "my-net.py", "models/net.py"):
        Path(name).write_text("def make(): ...\n")
    found = invoke("compare", model, "--on", "torch")
    assert isinstance(found.exception, InvalidRequest)
    assert meant in str(found.exception)
    assert len(str(found.exception).splitlines()) == 1


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("option", ["--reference", "--inputs"])
def test_functions_of_callables_are_named_by_modules_too(option: str) -> None:
    given = {"--reference": "ref:ref", "--inputs": "ref:draw"} | {option: "ref.py:ref"}
    texts = [text for pair in given.items() for text in pair]
    found = invoke("compare", "callable", "--on", "python:call=math.sin,python:call=math.cos", *texts)
    assert isinstance(found.exception, InvalidRequest)
    assert "ref.py:ref" in str(found.exception)
    assert found.exception.code == "E_REFERENCE"


def test_a_function_of_a_referee_is_answered_with_its_file_and_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "task.py"
    file.write_text("def softmax(x): ...\n")
    with pytest.raises(InvalidRequest) as refused:
        imported(f"{file}:sofmax", [])
    assert refused.value.code == "E_REQUEST"
    assert refused.value.__cause__ is None
    assert str(file) in str(refused.value)
    assert str(refused.value).endswith("did you mean softmax?")


@pytest.mark.slow
def test_named_dimensions_and_inputs_of_a_file_are_answered_with_the_nearest(tmp_path: Path) -> None:
    file = onnx_file(tmp_path / "t.onnx")
    bound = {"dims": "batch=1,sequence=4"}
    for options in ({"dims": "btach=2"}, {"shapes": ("idz:1x4",)}, {**bound, "ranges": ("idz:0..3",)}):
        with pytest.raises(FairlapError) as refused:
            plan_of(RaceRequest(models=(str(file),), contestants=Contestants("torch"), **options))
        assert "did you mean" in str(refused.value)


@pytest.mark.parametrize(
    ("model", "meant"), [("convnt", "convnet"), ("race.tmol", "race.toml"), ("./relu.onx", "relu.onnx")]
)
@pytest.mark.parametrize("more", [(), ("--on", "torch")])
def test_an_unknown_model_comes_before_the_contestants_that_lack(
    model: str, meant: str, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("race.toml", "relu.onnx"):
        Path(name).touch()
    refused = str(refusal("compare", model, *more))
    assert f"did you mean {meant}" in refused
    assert "--on" not in refused


def test_contestants_are_asked_for_where_the_model_is_known() -> None:
    assert "--on" in str(refusal("compare", "convnet"))
