"""A bundle is whole, or the check names what was changed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, output, refusal
from fairlap.errors import FairlapError, InvalidRequest
from fairlap.render.bundle.archive import packed, unpacked
from fairlap.render.bundle.contents import RUN, bundle_of
from fairlap.render.bundle.manifest import MANIFEST, MANIFEST_HASH, sha256
from fairlap.render.bundle.verify import Verification, verify
from fairlap.results.prices import price_given
from fairlap.store.runs.run_file import save_run
from forged_bundles import parts_of, rehashed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured_runs import a_measured_run, store_measured_run


@cache
def bundle(blocks: int = 6) -> bytes:
    run, samples = a_measured_run(blocks)
    made = bundle_of(run, "a", lambda *whose: samples[whose], price=price_given("1EUR/h"), with_page=False)
    return made.content


def problems(content: bytes) -> list[str]:
    return verify(content, "x").problems


def changed(name: str, change: Callable[[Any], object]) -> dict[str, bytes]:
    parts = parts_of(bundle())
    document = json.loads(parts[name])
    change(document)
    return {**parts, name: json.dumps(document).encode()}


def with_sample(factor: float) -> dict[str, bytes]:
    """One sample of the third file is changed."""
    parts = parts_of(bundle())
    name = "samples/00002.f64"
    ns = np.frombuffer(parts[name], dtype="<f8").copy()
    ns[17] *= factor
    return {**parts, name: ns.tobytes()}


def test_a_bundle_is_whole_and_every_figure_follows_from_its_samples() -> None:
    found: Verification = verify(bundle(), "x")
    assert found.problems == []
    assert found.counts["samples"] == 1200
    assert found.counts["timings"] == 12
    assert found.counts["medians of turns"] == 48
    assert found.counts["rows"] == 2
    assert found.counts["comparisons"] == 1
    rows = json.loads(parts_of(bundle())[RUN])["rows"]
    assert {row["currency"] for row in rows} == {"EUR"}


def test_the_same_run_makes_the_same_bytes() -> None:
    run, samples = a_measured_run(blocks=6)
    again = bundle_of(run, "a", lambda *whose: samples[whose], price=price_given("1EUR/h"), with_page=False)
    assert again.content == bundle()
    assert again.hash == verify(bundle(), "x").hash


def test_one_changed_sample_is_named_by_its_process() -> None:
    found = problems(packed(with_sample(1.001)))
    contestant, block = _third_process()
    assert any(line.startswith("samples/00002.f64") and contestant in line for line in found)
    hidden = problems(rehashed(with_sample(1.001)))  # all hashes fit again
    assert hidden
    assert all(line.startswith(f"{RUN}: ") for line in hidden)
    assert any(f"{contestant} in block {block}" in line for line in hidden)


def _third_process() -> tuple[str, int]:
    listed = json.loads(parts_of(bundle())["samples.json"])[2]
    return listed["contestant"], listed["block"]


def _row(document: dict[str, Any]) -> None:
    document["rows"][0]["latency_p50_ns"]["value"] *= 0.99


def _end_of_an_interval(document: dict[str, Any]) -> None:
    document["rows"][1]["ratio"]["low"] *= 1.001


def _verdict(document: dict[str, Any]) -> None:
    document["work_results"][0]["comparisons"][0]["verdict"] = "equivalent"


def _percentile(document: dict[str, Any]) -> None:
    document["processes"][3]["timings"]["wall_ns"]["p99_ns"] += 1


def _turn(document: dict[str, Any]) -> None:
    document["processes"][3]["rounds_ns"][1] *= 1.0001


def _outcome(document: dict[str, Any]) -> None:
    document["processes"][3]["outcome"] = "disqualified"


def _version(document: dict[str, Any]) -> None:
    document["processes"][0]["version"] = "9.9.9"


def _missing_row(document: dict[str, Any]) -> None:
    document["rows"].pop()


@pytest.mark.slow_but("_percentile", "_verdict", "_turn")
@pytest.mark.parametrize(
    "change", [_row, _end_of_an_interval, _verdict, _percentile, _turn, _outcome, _version, _missing_row]
)
def test_one_changed_figure_is_named_even_where_all_hashes_were_made_again(
    change: Callable[[dict[str, Any]], None],
) -> None:
    parts = changed(RUN, change)
    assert f"{RUN}: its SHA-256 is not that of the manifest (the run: plan, machine, processes, rows, comparisons)" in (
        problems(packed(parts))
    )
    hidden = problems(rehashed(parts))
    assert hidden
    assert all(line.startswith((f"{RUN}: ", "model-card.md: ", "environment.json")) for line in hidden)


@pytest.mark.parametrize("name", ["plan.json", "environment.json", "hashes.json"])
def test_a_part_that_contradicts_the_run_is_named(name: str) -> None:
    def change(document: dict[str, Any]) -> None:
        first = next(iter(document))
        document[first] = "other"

    assert any(line.startswith(name) for line in problems(rehashed(changed(name, change))))


def test_one_changed_hash_is_named() -> None:
    parts = parts_of(bundle())
    listed = json.loads(parts[MANIFEST])
    listed["parts"][1]["sha256"] = "0" * 64
    found = problems(packed({**parts, MANIFEST: json.dumps(listed).encode()}))
    assert any(line.startswith(listed["parts"][1]["name"]) for line in found)
    assert any(line.startswith(MANIFEST) for line in found)
    assert any(line.startswith(MANIFEST) for line in problems(packed({**parts, MANIFEST_HASH: b"0" * 64})))


def test_a_part_that_is_missing_or_was_added_is_named() -> None:
    parts = parts_of(bundle())
    without = {name: part for name, part in parts.items() if name != "METHOD.md"}
    assert any(line.startswith("METHOD.md: it is missing") for line in problems(packed(without)))
    assert problems(packed({**parts, "more.txt": b"x"})) == ["more.txt: the manifest does not list it"]
    assert any("samples/99999.f64" in line for line in problems(rehashed({**parts, "samples/99999.f64": b"12345678"})))


def test_without_its_run_or_samples_nothing_passes() -> None:
    for name in (RUN, "samples.json", "samples/00000.f64"):
        parts = {each: part for each, part in parts_of(bundle()).items() if each != name}
        assert any(name in line for line in problems(rehashed(parts)))


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_changed_byte_is_noticed(data: st.DataObject) -> None:
    content = bytearray(bundle(2))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        assert problems(bytes(content))
    except FairlapError as error:
        assert error.code == "E_BUNDLE"  # noqa: PT017  (either is right)


def test_any_changed_bit_between_the_parts_is_noticed() -> None:
    """Every bit of the ZIP file's own fields, in a file of two parts: both are whole in each of these."""
    content = packed({"a.txt": b"first", "b.txt": b"second"})
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            try:
                found = unpacked(bytes(changed), "x")
            except FairlapError as error:
                assert error.code == "E_BUNDLE"  # noqa: PT017  (either is right)
            else:
                assert found.damaged, f"bit {bit} of byte {place}"


def test_a_part_whose_checksum_in_the_zip_file_is_wrong_is_named() -> None:
    """A ZIP file holds it twice, and readers read the second; the part itself is whole."""
    name, content = "samples/00001.f64", bytearray(bundle(2))
    info = zipfile.ZipFile(io.BytesIO(content)).getinfo(name)
    old, new = info.CRC.to_bytes(4, "little"), (info.CRC ^ 1).to_bytes(4, "little")
    places = [place for place in range(len(content)) if content[place : place + 4] == old]
    assert len(places) == 2
    for place, named in zip(places, ("the file", name), strict=True):
        changed = bytearray(content)
        changed[place : place + 4] = new
        assert [line for line in problems(bytes(changed)) if line.startswith(f"{named}: ")]


@settings(max_examples=40)
@given(st.binary(max_size=300))
def test_rubbish_is_no_bundle(content: bytes) -> None:
    with pytest.raises(InvalidRequest) as error:
        verify(content, "x")
    assert error.value.code == "E_BUNDLE"


@settings(max_examples=20)
@given(st.integers(0, 10**9))
def test_a_file_that_was_cut_off_is_no_bundle(place: int) -> None:
    content = bundle(2)
    with pytest.raises(InvalidRequest):
        verify(content[: place % len(content)], "x")


def test_bytes_in_front_or_behind_are_noticed() -> None:
    content = bundle(2)
    assert problems(content + b"x")
    assert problems(b"x" + content)


def test_a_run_of_before_turns_were_counted_is_checked_as_far_as_it_can_be() -> None:
    run, samples = a_measured_run(blocks=6)
    for process in run.processes:
        process.round_samples = []
    found = verify(bundle_of(run, "a", lambda *whose: samples[whose], with_page=False).content, "x")
    assert found.problems == []
    assert any("medians of turns" in text for text in found.unchecked)


def test_processes_without_samples_are_bundled_where_they_have_no_timing() -> None:
    run, samples = a_measured_run(blocks=6)
    lost = run.processes[0]
    lost.outcome, lost.code, lost.timings = "crash", "E_CRASH", {}
    samples[lost.block, lost.contestant] = {}
    assert problems(bundle_of(run, "a", lambda *whose: samples[whose], with_page=False).content) == []


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.chdir(tmp_path)
    return store_measured_run()


def test_the_commands_write_and_check_a_bundle_with_its_page(stored: str, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    made = json.loads(output("bundle", stored, "-o", "x.fairlap", "--json"))
    assert made["run"] == stored
    parts = parts_of((tmp_path / "x.fairlap").read_bytes())
    assert made["sha256"] == sha256(parts[MANIFEST])
    assert parts["page.html"].startswith(b"<!doctype html>")
    assert json.loads(parts["licences.json"])["fairlap"] == "Apache-2.0"
    found = json.loads(output("verify", "x.fairlap", "--hash", made["sha256"], "--json"))
    assert found["whole"]
    assert found["sha256"] == made["sha256"]
    assert made["sha256"] in output("verify", "x.fairlap")


def test_a_changed_bundle_and_another_hash_end_with_status_1(stored: str, tmp_path: Path) -> None:
    output("bundle", stored, "-o", "x.fairlap", "--no-page")
    assert invoke("verify", "x.fairlap", "--hash", "0" * 64).exit_code == 1
    content = bytearray((tmp_path / "x.fairlap").read_bytes())
    content[content.index(parts_of(bytes(content))["samples/00000.f64"])] ^= 1
    (tmp_path / "x.fairlap").write_bytes(content)
    result = invoke("verify", "x.fairlap", "--json")
    assert result.exit_code == 1
    assert '"E_BUNDLE_CHANGED"' in result.output
    assert "samples/00000.f64" in result.output


@pytest.mark.slow
def test_an_exported_file_makes_the_same_figures_as_the_store(stored: str, tmp_path: Path) -> None:
    output("runs", "export", stored, "exported.json")
    output("bundle", "exported.json", "-o", "file.fairlap", "--no-page")
    output("bundle", stored, "-o", "store.fairlap", "--no-page")
    assert (tmp_path / "file.fairlap").read_bytes() == (tmp_path / "store.fairlap").read_bytes()


def test_the_run_of_a_bundle_is_a_run_file(stored: str, tmp_path: Path) -> None:
    output("bundle", stored, "-o", "x.fairlap", "--no-page")
    (tmp_path / "again.json").write_bytes(parts_of((tmp_path / "x.fairlap").read_bytes())[RUN])
    assert "torch" in output("across", "again.json")


def test_what_cannot_be_done_is_refused_with_a_code(stored: str, tmp_path: Path) -> None:
    run, _ = a_measured_run()
    save_run(tmp_path / "plain.json", run)
    assert refusal("bundle", "plain.json", "-o", "x.fairlap").code == "E_BUNDLE"  # it has no samples
    assert refusal("bundle", stored, "-o", "/nowhere/x.fairlap").code == "E_FILE"
    assert refusal("bundle", stored, "-o", "x.fairlap", "--baseline", "tensroflow").code == "E_REQUEST"
    assert refusal("bundle", "nothing", "-o", "x.fairlap").code == "E_NO_RUN"
    assert refusal("verify", "plain.json").code == "E_BUNDLE"
    assert refusal("verify", "nothing.fairlap").code == "E_BUNDLE"
    assert not (tmp_path / "x.fairlap").exists()


def test_a_bundle_is_read_as_a_run_file_where_nothing_in_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("six.fairlap").write_bytes(bundle())
    Path("eight.fairlap").write_bytes(bundle(8))
    for name in ("six", "eight"):
        Path(f"{name}.json").write_bytes(parts_of(Path(f"{name}.fairlap").read_bytes())[RUN])
    for command in (["diff"], ["across"], ["gate", "--margin", "5%"]):
        of_files = invoke(*command, "six.json", "eight.json")
        of_bundles = invoke(*command, "six.fairlap", "eight.fairlap")
        assert of_bundles.exit_code == of_files.exit_code, of_bundles.output
        assert of_bundles.stdout.replace(".fairlap", ".json") == of_files.stdout
    assert json.loads(output("export", "six.fairlap", "--json"))["rows"]
    Path("changed.fairlap").write_bytes(packed(with_sample(1.01)))
    for arguments in (("rerun", "changed.fairlap"), ("diff", "six.fairlap", "changed.fairlap")):
        assert refusal(*arguments).code == "E_BUNDLE_CHANGED"
    with zipfile.ZipFile("other.zip", "w") as other:
        other.writestr("a", "b")
    assert refusal("report", "other.zip", "-o", "page.html").code == "E_BUNDLE"
    output("bundle", "six.fairlap", "-o", "again.fairlap", "--no-page", "--price", "1EUR/h")
    assert verify(Path("again.fairlap").read_bytes(), "again").is_whole
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    output("runs", "import", "six.fairlap")
    assert refusal("runs", "import", "changed.fairlap").code == "E_BUNDLE_CHANGED"
    output("bundle", "last", "-o", "stored.fairlap", "--no-page")  # with its samples
    found, stored = (json.loads(output("show", name, "--json")) for name in ("six.fairlap", "last"))
    assert found["processes"] == stored["processes"]
    assert found["state"] == stored["state"] == "finished"
    assert output("show", "six.fairlap").splitlines()[2:] == output("show", "last").splitlines()[2:]
