"""Only this machine is spoken to, unless another host is confirmed; nothing is sent to find out."""

from __future__ import annotations

from pathlib import Path

import fairlap
import pytest
from command_line import invoke, refusal
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.race.planning.plan_file import load_plan
from fairlap.request.fields.server_address import require_confirmed, server_address
from fairlap.request.names import ContestantName, Contestants, contestant_named
from no_packets import refuse_packets


@pytest.fixture(autouse=True)
def no_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_packets(monkeypatch)


@pytest.mark.parametrize(
    ("text", "url", "options"),
    [
        ("http://127.0.0.1:8000/v2/models/x", "http://127.0.0.1:8000/v2/models/x", ()),
        ("http://[::1]/v1/models/x:predict", "http://[::1]/v1/models/x:predict", ()),
        ("http://localhost:1/v1/models/x:predict:timeout=5s", "http://localhost:1/v1/models/x:predict",
         (("timeout", "5s"),)),
        ("http://127.0.0.1/:tensors=json:timeout=1m", "http://127.0.0.1/", (("tensors", "json"), ("timeout", "1m"))),
    ],
)  # fmt: skip
def test_an_address_is_a_contestant_with_options(text: str, url: str, options: tuple[tuple[str, str], ...]) -> None:
    name = contestant_named(text)
    assert name == ContestantName(text, "http", options=(("url", url), *options))
    assert name.url == url
    assert server_address(url).is_loopback


@pytest.mark.parametrize(
    "url",
    [
        *("https://127.0.0.1/x", "http://", "http:///x", "http://user@127.0.0.1/x", "http://127.0.0.1:0/x"),
        *("http://127.0.0.1:65536/x", "http://127.0.0.1:99999999/x", "http://127.0.0.1/x?a", "http://127.0.0.1/x#a"),
        *("http://127.0.0.1/a b", "http://127.0.0.1\\@example.org/", "http://127.0.0.1/\u20ac"),
    ],
)
def test_what_is_not_an_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        server_address(url)
    assert raised.value.code == "E_CONTESTANT"


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InvalidRequest) as refused:
        server_address("http://ada:secret@127.0.0.1:8000/v2/models/x")
    assert refused.value.code == "E_CONTESTANT"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "host", ["10.0.0.5", "example.org", "0.0.0.0", "127.1", "2130706433", "[2001:db8::1]", "localhost.x"]
)
def test_another_host_has_to_be_confirmed(host: str) -> None:
    contestants = Contestants(f"torch,http://{host}/x")
    with pytest.raises(InvalidRequest) as raised:
        require_confirmed(contestants, remote=False)
    assert raised.value.code == "E_REMOTE"
    require_confirmed(contestants, remote=True)


def test_a_race_with_another_host_is_refused_on_the_command_line_in_python_in_a_request_and_in_a_plan(
    tmp_path: Path,
) -> None:
    url, plan, request = "http://192.0.2.1/v2/models/x", tmp_path / "plan.json", tmp_path / "race.toml"
    request.write_text(f'models = ["mlp"]\ncontestants = ["{url}"]\n')
    assert refusal("compare", "mlp", "--on", url).code == "E_REMOTE"
    assert refusal("compare", request).code == "E_REMOTE"
    assert refusal("self-test", "mlp", "--on", url).code == "E_REMOTE"
    with pytest.raises(FairlapError) as raised:
        fairlap.compare("mlp", on=url)
    assert raised.value.code == "E_REMOTE"
    confirmed = invoke("compare", "mlp", "--on", url, "--remote", "--blocks", 1, "--save-plan", plan, "--dry-run")
    assert confirmed.exit_code == 0, confirmed.output
    assert load_plan(plan).contestants[0].url == url
    assert refusal("compare", "--plan", plan, "--dry-run").code == "E_REMOTE"
    assert invoke("compare", "--plan", plan, "--remote", "--dry-run").exit_code == 0
    request.write_text(request.read_text() + "remote = true\nblocks = 1\n")
    assert invoke("compare", request, "--dry-run").exit_code == 0


def test_the_adapter_without_an_address_and_wrong_options_are_refused() -> None:
    for contestant, word in {
        "http": "127.0.0.1",
        "http://127.0.0.1/x:tensors=xml": "xml",
        "http://127.0.0.1/x:timeout=0": "duration",
        "torch:over=grpc": "grpc",
        "http://127.0.0.1/x:over=http": "over=",
        "./worker:over=http": "over=",
    }.items():
        assert word in str(refusal("compare", "mlp", "--on", contestant))


def test_a_race_with_a_server_draws_one_set_of_weights() -> None:
    done = invoke("compare", "mlp", "--on", "http://127.0.0.1/x", "--blocks", 3, "--dry-run", "--json")
    assert done.exit_code == 0
    assert '"data_seed": 1' not in done.output
