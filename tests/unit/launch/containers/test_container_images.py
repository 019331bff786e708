"""Images of contestants: named and split from tags, pinned by id, asked for their modules, refused in one line."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairlap.cli.races.dry_run import screen_of
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.launch.containers.container import ROOT, SEARCHED, own_modules
from fairlap.launch.containers.images import image_named
from fairlap.launch.packages.origins import with_pinned_origins
from fairlap.launch.runners import Runner, runners_for
from fairlap.machine.control_group import shares_cpu_with
from fairlap.machine.programs.containers import LABEL
from fairlap.machine.root import Root
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.processes.contained import unequal_share, with_paths
from fairlap.request.fields.package_origin import origin_of
from fairlap.request.names import ContestantName, Contestants, contestant_named
from fairlap.request.race_request import RaceRequest
from stand_in_docker import IMAGE_ID, asked_of, needs_namespaces, write_docker

PINNED = f"image:1#sha256={IMAGE_ID}"
DIGEST = "a" * 64


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "docker"
    monkeypatch.setenv("FAIRLAP_DOCKER", str(write_docker(folder)))
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return folder


def pinned(text: str) -> ContestantName:
    [name] = with_pinned_origins([contestant_named(text)])
    return name


def runner(text: str, tmp_path: Path) -> Runner:
    with ExitStack() as stack:
        [found] = runners_for((pinned(text),), 1, "cpu", tmp_path / "race" / "caches", stack, lambda text: None)
    return found


@pytest.mark.parametrize(
    ("text", "image", "variant"),
    [
        ("torch@docker=image", "image", ""),
        ("torch@docker=image:tag", "image:tag", ""),
        ("torch:compile:docker=localhost:5000/a/b:1.2", "localhost:5000/a/b:1.2", "compile"),
        ("torch:docker=localhost:5000/a/b:threads=2", "localhost:5000/a/b", ""),
        (f"torch:docker=a/b@sha256:{DIGEST}:threads=2", f"a/b@sha256:{DIGEST}", ""),
        (f"torch@docker=a:1@sha256:{DIGEST}", f"a:1@sha256:{DIGEST}", ""),
        ("python:call=hot.parse:docker=image:tag", "image:tag", ""),
    ],
)
def test_an_image_has_its_tag_and_its_digest(text: str, image: str, variant: str) -> None:
    name = contestant_named(text)
    assert (name.image, name.variant, name.text) == (image, variant, text)
    assert name.is_apart
    assert "docker" not in name.framework_options


@pytest.mark.parametrize("text", ["torch:docker=-v", "torch@docker=", "torch:docker=a b", "torch:docker=../image"])
def test_what_is_no_name_of_an_image_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        contestant_named(text)
    assert raised.value.code == "E_CONTESTANT"


def test_a_program_may_have_an_option_of_that_name() -> None:
    assert contestant_named("./worker:docker=x").image == ""


def test_it_is_pinned_by_its_id_which_the_row_has() -> None:
    name = pinned("torch@docker=image:1")
    assert name.image == PINNED
    assert pinned(f"torch:docker={PINNED}").image == PINNED
    assert origin_of(name.options) == {"image": "image:1", "image_id": f"sha256:{IMAGE_ID}"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("torch@docker=none:1", "E_IMAGE"),
        (f"torch:docker=image:1#sha256={'6' * 64}", "E_IMAGE"),
        ("torch==2.13.0:docker=image:1", "E_CONTESTANT"),
        ("torch:docker=image:1:python=3.11", "E_CONTESTANT"),
        ("torch:docker=image:1:with=numpy==2.1.0", "E_CONTESTANT"),
        ("command:run=true:docker=image:1", "E_CONTESTANT"),
    ],
)
def test_what_cannot_run_in_it_is_refused_before_anything_is_made(text: str, code: str) -> None:
    with pytest.raises(FairlapError) as raised:
        pinned(text)
    assert raised.value.code == code
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("answer", ["echo 'Cannot connect to the Docker daemon. Is it running?' >&2; exit 1", "exit 1"])
def test_without_its_service_it_is_refused(answer: str, docker: Path) -> None:
    (docker / "docker").write_text(f"#!/bin/sh\n{answer}\n")
    with pytest.raises(FairlapError) as raised:
        image_named("image:1")
    assert raised.value.code == "E_IMAGE"
    assert len(str(raised.value).splitlines()) == 1


def test_without_a_client_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_DOCKER", "no-such-client")
    with pytest.raises(FairlapError, match="no-such-client") as raised:
        image_named("image:1")
    assert raised.value.code == "E_IMAGE"


@pytest.mark.slow_but("GPU", "checkout")
@pytest.mark.parametrize(
    ("request_", "word"),
    [
        ({"device": "cuda"}, "GPU"),
        ({"min_memory": True}, "--min-memory"),
        ({"max_batch": 8}, "--max-batch"),
        ({"contestants": "torch:docker=image:1:allocator=keep"}, "allocator="),
        ({"contestants": "torch:docker=image:1:checkout=."}, "checkout="),
    ],
)
def test_what_is_not_made_to_work_there_is_refused(request_: dict[str, object], word: str) -> None:
    given = {"models": ("mlp",), "contestants": "torch@docker=image:1", **request_}
    given["contestants"] = Contestants(str(given["contestants"]))
    with pytest.raises(InvalidRequest, match=word) as raised:
        plan_of(RaceRequest(**given), notify=lambda text: None)  # type: ignore[arg-type]
    assert raised.value.code == "E_CONTESTANT"


def test_a_plan_reaches_its_image() -> None:
    plan = plan_of(RaceRequest(models=("mlp",), contestants=Contestants("torch@docker=image:1")))
    assert any(PINNED in line for line in reach_of(plan))


@pytest.mark.slow
@needs_namespaces
def test_one_without_the_framework_is_not_installed(tmp_path: Path, docker: Path) -> None:
    missing = runner("mxnet@docker=image:1", tmp_path).missing
    assert missing is not None
    assert missing.code == "E_NOT_INSTALLED"
    [asked] = [words for words in asked_of(docker) if words[0] == "run"]
    assert "--network=none" in asked


def test_one_with_another_python_is_refused(tmp_path: Path, docker: Path) -> None:
    said = {"version": [3, 9, 1], "implementation": "cpython", "free_threaded": False, "missing": []}
    inspected = [{"Id": f"sha256:{'7' * 64}", "Config": {"Env": None}}]
    (docker / "docker").write_text(
        f"#!/bin/sh\n[ $1 = image ] && echo '{json.dumps(inspected)}' && exit 0\necho '{json.dumps(said)}'\n"
    )
    missing = runner("python:call=math.sqrt:docker=image:1", tmp_path).missing
    assert missing is not None
    assert missing.code == "E_IMAGE"
    assert "3.9.1" in str(missing)


@needs_namespaces
def test_a_container_sees_the_race_and_the_materials_and_runs_where_callables_are(tmp_path: Path) -> None:
    plan = plan_of(RaceRequest(models=("mlp",), contestants=Contestants("python:call=math.sqrt:docker=image:1")))
    found = runner("python:call=math.sqrt:docker=image:1", tmp_path)
    assert found.container is not None
    assert found.environment["HOME"].startswith(str(tmp_path / "race"))
    (tmp_path / "race").mkdir(exist_ok=True)
    folder = tmp_path / "cache" / "work" / "mlp"
    folder.mkdir(parents=True)

    class Drawn:
        pass

    materials = Drawn()
    materials.work, materials.folder, materials.package = plan.works[0], folder, "fairlap.bench_models.mlp"  # type: ignore[attr-defined]
    [shown] = with_paths([found], plan, lambda work, seed: materials)  # type: ignore[arg-type, return-value]
    assert shown.container is not None
    assert {*shown.container.writable} == {str(tmp_path / "race"), str(folder.parent)}
    assert str(Path.cwd()) in shown.container.readable
    assert shown.container.folder == str(Path.cwd())


def test_what_the_image_lacks_is_brought_and_nothing_else() -> None:
    whole, little = own_modules(("numpy", "msgspec", "scipy", "pynvml")), own_modules(())
    assert f"{SEARCHED}/fairlap" in little.values()
    brought = {*whole.values()} - {*little.values()}
    assert {f"{SEARCHED}/{name}" for name in ("numpy", "msgspec", "scipy", "pynvml.py")} <= brought
    assert all(path.exists() and place.startswith(ROOT) for path, place in whole.items())


def test_a_container_with_a_share_of_its_own_is_named_beside_one_that_has_none() -> None:
    alone, mixed = (
        plan_of(RaceRequest(models=("mlp",), contestants=Contestants(listed)))
        for listed in ("torch@docker=image:1", "torch@docker=image:1,torch")
    )
    worker = SimpleNamespace(has_own_share=True)
    assert [each.code for each in unequal_share(worker, mixed)] == ["W_OWN_SHARE"]  # type: ignore[arg-type]
    assert unequal_share(worker, alone) == []  # type: ignore[arg-type]
    assert unequal_share(SimpleNamespace(has_own_share=False), mixed) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "other", "shares"),
    [
        ("4:memory:/a\n1:cpu,cpuacct:/\n0::/\n", "4:memory:/docker/x\n1:cpu,cpuacct:/docker/x\n0::/\n", False),
        ("4:memory:/a\n1:cpu,cpuacct:/\n0::/\n", "4:memory:/docker/x\n1:cpu,cpuacct:/\n0::/\n", True),
        ("0::/user.slice\n", "0::/system.slice/docker-x.scope\n", False),
    ],
)
def test_the_group_that_shares_the_cpu_is_found_in_both_versions(
    tmp_path: Path, own: str, other: str, shares: bool
) -> None:
    for pid, groups in (("self", own), ("7", other)):
        (tmp_path / "proc" / pid).mkdir(parents=True)
        (tmp_path / "proc" / pid / "cgroup").write_text(groups)
    assert shares_cpu_with([7], Root(tmp_path)) is shares


def test_labels_of_commands_and_contestants_are_the_same() -> None:
    assert LABEL == "fairlap.worker"


def test_a_dry_run_names_the_image_and_installs_nothing(docker: Path) -> None:
    plan = plan_of(RaceRequest(models=("mlp",), contestants=Contestants("torch@docker=image:1")))
    [line] = [line for line in screen_of(plan) if line.strip().startswith("torch@docker=")]
    assert "in a container of image:1" in line
    assert "installed" not in line


def test_an_image_that_is_absent_is_fetched_with_the_client_in_use(
    docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = docker / "podman"
    (docker / "docker").rename(client)
    monkeypatch.setenv("FAIRLAP_DOCKER", str(client))
    with pytest.raises(FairlapError) as raised:
        image_named("image:2")
    assert raised.value.code == "E_IMAGE"
    assert "`podman pull image:2`" in str(raised.value)
