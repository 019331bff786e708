"""Secrets are hidden wherever a text enters or leaves fairlap, and nothing else is."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import stat
import subprocess
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap, here
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.race.planning.plan_file import load_plan
from fairlap.race.race import Race
from fairlap.request.names import contestant_named
from fairlap.secrets import HIDDEN, without_secrets, without_secrets_or_queries
from hypothesis import given
from hypothesis import strategies as st

CORE = "Zq7Xw3Vt9Lm2Kp5R"  # with a number in front, in each secret


def core(number: int) -> str:
    return f"{number:02d}{CORE}"


FORMS = [
    "ghp_{}aBcD",
    "gho_{}aBcD",
    "github_pat_{}_aBc",
    "glpat-{}ab-c",
    "hf_{}aBcD",
    "sk-{}abcd",
    "sk-ant-{}-abcd",
    "xoxb-{}-99",
    "nvapi-{}abc",
    "pypi-{}abc",
    "npm_{}{}",
    "AIza{}{}x",
    "eyJ{}.{}.{}",
    "Bearer {}",
    "bearer  {}",
    "Authorization: Basic {}==",
    "X-Api-Key: {}",
    "https://me:{}@host/p",
    "postgresql://me:{}@host/db",
    "curl -u me:{}@host",
    "me:{}@host.example",
    "https://h/x?token={}",
    "https://h/x?a=1&api_key={}&b=2",
    "https://h/x?X-Amz-Signature={}",
    "--token={}",
    "--api-key {}",
    "--db-password={}",
    "MY_SECRET={}",
    "AWS_SECRET_ACCESS_KEY={}",
    "login me password {}",
    "--token=-{}",
    "https://h/x#access_token={}",
    "aws_secret_access_key={}",
    "Server=h;Password={};Port=1",
    "Cookie: theme=dark; session={}; last={}",
]
FIELDS = ['{"password": "%s"}', '{"client_secret":"%s","a":1}', "{'api_key': '%s'}", '{"refresh-token": "%s"}']


@pytest.mark.parametrize("form", FIELDS)
def test_a_field_that_holds_a_secret_keeps_its_name_alone(form: str) -> None:
    text = form % core(1)
    assert without_secrets(text) == form % HIDDEN
    inside = json.dumps({"message": text})
    assert json.loads(without_secrets(inside)) == {"message": form % HIDDEN}
    assert without_secrets(without_secrets(inside)) == without_secrets(inside)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", ["{}", "before {} after", "run '{}' now", '{{"text": "{}"}}', "({})"])
def test_a_secret_of_a_known_form_is_hidden_once_and_for_all(form: str, around: str) -> None:
    given = around.format(form.replace("{}", core(1)))
    hidden = without_secrets(given)
    assert CORE not in hidden
    assert HIDDEN in hidden
    assert without_secrets(hidden) == hidden
    assert CORE not in str(FairlapError(given))
    if around.startswith("{{"):
        json.loads(hidden)


def test_keys_of_clouds_are_hidden_by_their_form() -> None:
    assert without_secrets("id AKIAZQ7XW3VT9LM2KP5R, ASIAZQ7XW3VT9LM2KP5R") == f"id {HIDDEN}, {HIDDEN}"


@pytest.mark.parametrize(
    "text",
    [
        "torch:compile",
        "torch==2.13.0:threads=2",
        "http://127.0.0.1:8000/v2/models/x?size=3",
        "command:./x --tokens 128",
        "give a bound such as --first-token 200ms",
        "Invalid value for '--per-token': '-50ms' is not a duration",
        "weights.safetensors@sha256:0123456789abcdef",
        "torch:weights=x.safetensors@sha256:0123456789abcdef",
        "old@/tmp/old=./prog --max_tokens=1000",
        "--max-tokens 100000",
        "tokens_per_s: 1234567",
        "git@github.com:org/repo",
        "ids:0..30521",
        "postgresql://bench@db.example.org/fairlap",
        '{"tokens": [{"token": 1}], "key": "abcdefgh"}',
        "risk-adjusted-long-name-of-a-variant",
        "the basic information that its bearer has",
        "python:call=os.getpid",
        "10:30 me@home",
        "a0b1" * 16,
        "KMP_AFFINITY=granularity=fine,compact,1,0",
        "cuda:0",
        "task-asked-of-the-worker-process",
        "#tokens=8",
        '{"first_token": {"p50": 1.5}, "unit": "token", "max_tokens": "many"}',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text


def test_messages_lose_queries_and_logins_of_addresses_whole() -> None:
    shown = without_secrets_or_queries("'http://me@h/m?plain=yes,torch' is not; ftp://a:b@h/")
    assert shown == f"'http://...@h/m?{HIDDEN}' is not; ftp://...@h/"


@pytest.mark.slow_but("a://", "--token", "-eyJ")
@pytest.mark.parametrize(
    "part",
    [
        "a",
        "a://",
        "http://",
        "a:",
        "x:yy",
        "-eyJ",
        "Basic ",
        "Basic",
        "X-",
        "--",
        "--a-",
        "?a",
        "&a=",
        "A_",
        "login ",
        "login a ",
        "Bearer ",
        "sk-",
        "Cookie: ",
        "Cookie:",
        "Cookie: a;",
        "Cookie: aaaa; ",
        "aaaa; ",
        "'token':",
        '"password": "',
        "a_password=",
        "--token=-",
        " ",
        ":",
        "@",
        "//:",
        "a.b+",
        "ghp_",
        "AKIA",
    ],
)
def test_a_long_text_is_treated_in_time_that_grows_with_its_length(part: str) -> None:
    began_s = time.process_time()
    without_secrets_or_queries("@ token " + part * (100_000 // len(part)))
    assert time.process_time() - began_s < 2


@given(st.text(st.sampled_from("a:/@?&=-. 0eyJ\"'gh_ptokenBearrskxob"), max_size=80))
def test_what_was_treated_stays_as_it_is_and_json_stays_json(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once
    assert isinstance(json.loads(without_secrets(json.dumps({"a": [text]}))), dict)


def test_the_name_of_a_contestant_is_shown_without_the_secret_that_it_runs_with() -> None:
    name = contestant_named(f"command:./prog --token={core(2)}")
    assert name.text == f"command:./prog --token={HIDDEN}"
    assert dict(name.options)["run"] == f"./prog --token={core(2)}"


def found_in(text: str | bytes, where: str) -> list[str]:
    raw = text.encode() if isinstance(text, str) else text
    found = []
    if CORE.encode() in raw or CORE.lower().encode() in raw.lower():
        place = raw.lower().index(CORE.lower().encode())
        found.append(f"{where}: {raw[max(0, place - 120) : place + 40]!r}")
    return found


def found_below(folder: Path) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        raw = path.read_bytes()
        found += found_in(raw, str(path))
        if zipfile.is_zipfile(io.BytesIO(raw)):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                for name in archive.namelist():
                    found += found_in(archive.read(name), f"{path}:{name}")
    return found


@pytest.mark.slow
def test_thirty_secrets_in_thirty_places_are_in_no_output(tmp_path: Path) -> None:
    bearer, password, token, out = core(3), core(4), f"ghp_{core(5)}aBcD", tmp_path / "out"
    out.mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    for words in (
        ["init", "-q"],
        ["remote", "add", "origin", f"https://me:{core(6)}@host.example/x.git"],
        ["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-q", "--allow-empty", "-m", f"glpat-{core(7)}abc"],
    ):
        subprocess.run(["git", *words], cwd=tree, check=True)
    (tree / ".netrc").write_text(f"machine host login me password {core(8)}\n")
    prints = tree / "prints.sh"
    prints.write_text(
        '#!/bin/sh\ncat .netrc\necho "Authorization: Bearer $1" >&2\n'
        f'echo "https://me:{core(9)}@h/?sig={core(10)} sk-{core(11)}abcd" >&2\nexit 3\n'
    )
    quick = tree / "quick.sh"
    quick.write_text("#!/bin/sh\nexit 0\n")
    (tree / "raises.py").write_text(
        f"def call():\n    raise ValueError('denied for me:{core(12)}@db.example, X-Api-Key: {core(13)}')\n"
        f"def prints():\n    print('MY_TOKEN={core(14)}')\n"
    )
    for script in (prints, quick):
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    variables: dict[str, Any] = {
        "KMP_SETTINGS": f"Bearer {bearer}",
        "NCCL_DEBUG_FILE": token,
        "JAX_COORDINATOR": f"me:{password}@host",
        "NCCL_API_KEY": core(15),
        "XLA_FLAGS": f"--cache_token={core(16)}",
        "TORCH_HOME": f"https://h/?x={core(17)}",
        "LD_LIBRARY_PATH": f"/opt/hf_{core(18)}abc/lib",
        "OMP_TOOL": f"eyJ{core(19)}.abcd.efgh",
        "JAX_COMPILATION_CACHE_DIR": f"s3://me:{core(20)}@bucket/x?sig={core(20)}",
        "TF_CPP_FOO": f"password={core(21)}",
        "GITHUB_TOKEN": core(22),
        "AWS_SECRET_ACCESS_KEY": core(23),
        "TORCH_LOGS": f"xoxb-{core(24)}-1",
        "PYTHONPATH": str(tree),
        "FAIRLAP_STORE": str(out / "runs.sqlite"),
        "FAIRLAP_CACHE": str(out / "cache"),
    }
    files = [word for end in ("json", "html", "md", "csv", "parquet") for word in ("-o", str(out / f"race.{end}"))]
    race = [
        "compare",
        "--command",
        f"a=./quick.sh --token={core(25)}",
        "--command",
        f"b=./quick.sh https://me:{core(26)}@h/",
        "--command",
        f"c=./prints.sh sk-{core(27)}abcd",
        "--blocks",
        "2",
        "--seconds",
        "0.05",
    ]
    done = fairlap(*race, *files, cwd=tree, **variables)
    assert done.returncode == 0, done.stderr
    calls = fairlap(
        "compare",
        "callable",
        "--on",
        "python:call=raises.call,python:call=raises.prints",
        "--blocks",
        "1",
        "--seconds",
        "0.02",
        "-o",
        str(out / "calls.json"),
        cwd=tree,
        **variables,
    )
    named = fairlap(
        "compare",
        "commands",
        "--on",
        f"command:./quick.sh --api-key {core(28)},command:./quick.sh",
        "--blocks",
        "1",
        "--seconds",
        "0.02",
        "--save-plan",
        str(out / "plan.json"),
        cwd=tree,
        **variables,
    )
    texts = [done, calls, named]
    for on, status in (
        (f"http=http://me:{core(29)}@h/m,torch", 0),  # no such program, and torch races
        (f"http://127.0.0.1:1/m?token={core(30)},torch", 2),
        (f"http://127.0.0.1:1/m?plain={core(31)}", 2),
        (f"https://me:{core(32)}@127.0.0.1:1/m", 2),
    ):
        texts.append(fairlap("compare", "mlp", "--on", on, "--blocks", "1", "--json", cwd=tree, **variables))
        assert texts[-1].returncode == status
    [first] = re.findall(r"stored as (\S+);", done.stderr)
    for words in (
        ["show", "last"],
        ["show", "last", "--json"],
        ["export", "last", "--json"],
        ["runs"],
        ["runs", "--json"],
        ["rerun", first],
        ["bundle", first, "-o", str(out / "last.fairlap")],
        ["report", str(out / "race.json"), "-o", str(out / "again.html")],
        ["recipe", str(out / "race.json"), "-o", str(out / "recipe")],
        ["doctor", "--json"],
        ["compare", "--plan", str(out / "race.json"), "--dry-run"],
    ):
        texts += [fairlap(*words, cwd=tree, **variables)]
    leaks = [leak for each in texts for leak in found_in(each.stdout + each.stderr, " ".join(each.args[6:9]))]
    with closing(sqlite3.connect(out / "runs.sqlite")) as db:
        leaks += found_in("\n".join(db.iterdump()), "store")
    assert leaks + found_below(out) == []
    stored = json.loads((out / "race.json").read_bytes())
    assert HIDDEN in json.dumps(stored["plan"])
    assert not any("Traceback (most recent" in each.stderr for each in texts)
    again = fairlap("compare", "--resume", "last", cwd=tree, **variables)
    assert again.returncode in (0, 2)
    assert (out / "last.fairlap").exists(), [each.stderr for each in texts if "bundle" in each.args]


def test_a_plan_that_lost_a_secret_is_not_run_again(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    race = ["compare", "--command", f"a=true --token={core(40)}", "--command", "b=true", "--blocks", "1"]
    saved = here(*race, "--save-plan", plan, "--dry-run")
    assert saved.returncode == 0, saved.stderr
    assert found_in(plan.read_bytes() + saved.stdout.encode() + saved.stderr.encode(), "plan") == []
    with pytest.raises(InvalidRequest) as refused:
        Race(load_plan(plan))
    assert refused.value.code == "E_SECRET"


@pytest.mark.parametrize(
    "text",
    [
        "--password 'hunter2 x'", "PASSWORD='hunter2 x'", "--api-key='hunter2'", '--token "hunter22"',
        "Authorization: Token hunter22", "Authorization: Basic hunter", "--pass hunter22", "--pwd hunter22",
        "https://h/?key=hunter", "https://h/?pass=hunter", "MYSQL_PWD=hunter", "AccountKey=hunter22==;x",
        '{"run": "x --password \\"hunter2 x\\" y"}',
        "env MASTERKEY=hunter22 true", "env SSHPASS=hunter22 true", "curl --user me:hunter22 x", "curl -u me:hunter22",
        "password: hunter22", '{"printed": "Passphrase: hunter22"}',
    ],
)  # fmt: skip
def test_a_secret_in_quotes_or_behind_a_scheme_is_hidden(text: str) -> None:
    hidden = without_secrets(text)
    assert "hunter" not in hidden
    assert without_secrets(hidden) == hidden
    assert hidden.count("'") == text.count("'")
    if text.startswith("{"):
        json.loads(hidden)


@pytest.mark.parametrize(
    "text",
    [
        "--bypass cached-value",
        "--compass north1",
        "SORTKEY=name",
        "-u root",
        "a token: word",
        "PWD=/home/x",
        '{"a": "--token "}, {"b": "x"}',
    ],
)
def test_what_only_ends_like_a_name_of_secrets_stays(text: str) -> None:
    assert without_secrets(text) == text
