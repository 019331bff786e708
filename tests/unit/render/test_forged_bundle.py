"""What people read of a bundle, and whose it is: forged with all hashes made to fit, and found."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import fairlap, here, invoke, output, refusal
from fairlap.render.bundle.archive import packed
from fairlap.render.bundle.contents import RUN, as_json
from fairlap.render.bundle.manifest import MANIFEST, MANIFEST_HASH, sha256
from forged_bundles import parts_of, rehashed
from measured_runs import store_measured_run

PAGE, METHOD, CARD = "page.html", "METHOD.md", "model-card.md"
SCRIPT = b"<script>alert('owned')</script></body>"


@pytest.fixture(scope="module")
def store_with_a_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One run for all tests, which only read the store."""
    path = tmp_path_factory.mktemp("store") / "runs.sqlite"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_STORE", str(path))
        return path, store_measured_run()


@pytest.fixture
def stored(store_with_a_run: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path, run = store_with_a_run
    monkeypatch.setenv("FAIRLAP_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture(scope="module")
def bundle_with_page(store_with_a_run: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    pytest.importorskip("altair", reason="pages need it")
    path, run = store_with_a_run
    file = tmp_path_factory.mktemp("bundle") / "x.fairlap"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FAIRLAP_STORE", str(path))
        output("bundle", run, "-o", file)
    return file.read_bytes()


@pytest.fixture
def bundle(stored: str, bundle_with_page: bytes) -> dict[str, bytes]:
    Path("x.fairlap").write_bytes(bundle_with_page)
    return parts_of(bundle_with_page)


def _verified(content: bytes) -> tuple[int, dict[str, Any]]:
    Path("forged.fairlap").write_bytes(content)
    done = invoke("verify", "forged.fairlap", "--json")
    return done.exit_code, json.loads(done.stdout.partition('\n{\n  "error"')[0])


@pytest.mark.slow_but("Content-Security-Policy", "METHOD.md-fairlap", "model-card")
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (PAGE, b"</body>", SCRIPT),
        (PAGE, b"Content-Security-Policy", b"X-Nothing"),
        (PAGE, b"torch", b"jaxxx"),
        (METHOD, b"fairlap", b"another tool"),
        (METHOD, b"\n", b"\nAll figures were made by hand.\n"),
        (CARD, b"torch", b"jaxxx"),
    ],
)
def test_a_document_that_was_forged_with_its_hashes_is_named(
    bundle: dict[str, bytes], name: str, old: bytes, new: bytes
) -> None:
    assert old in bundle[name]
    status, found = _verified(rehashed({**bundle, name: bundle[name].replace(old, new, 1)}))
    assert status == 1
    assert [line.partition(":")[0] for line in found["problems"]] == [name]


@pytest.mark.slow
def test_a_page_from_another_process_is_the_same(bundle: dict[str, bytes], stored: str) -> None:
    done = fairlap("verify", "x.fairlap", PYTHONHASHSEED="7", TZ="Asia/Tokyo", LC_ALL="C")
    assert done.returncode == 0, done.stdout + done.stderr
    assert PAGE not in done.stdout


@pytest.mark.parametrize("other", [{"fairlap": "99.0"}, {"charts": "altair 0.1"}])
def test_what_cannot_be_made_again_is_named(bundle: dict[str, bytes], other: dict[str, str]) -> None:
    forged = {**bundle, PAGE: bundle[PAGE].replace(b"</body>", SCRIPT)}
    status, found = _verified(rehashed(forged, **other))
    assert status == 3
    assert found["code"] == "E_BUNDLE_VERSION"
    expected = [METHOD, CARD, PAGE] if "fairlap" in other else [PAGE]
    assert [line.partition(":")[0] for line in found["not_made_again"]] == expected


def _with_key(document: dict[str, Any]) -> None:
    document["conclusion"] = "jaxxx is the fastest"


def _with_key_of_a_process(document: dict[str, Any]) -> None:
    document["processes"][0]["conclusion"] = "jaxxx is the fastest"


def _with_key_of_a_row(document: dict[str, Any]) -> None:
    document["rows"][0]["conclusion"] = "jaxxx is the fastest"


@pytest.mark.slow_but("_with_key_of_a_row")
@pytest.mark.parametrize("change", [_with_key, _with_key_of_a_process, _with_key_of_a_row])
def test_what_was_written_beside_the_fields_of_a_run_is_named(
    bundle: dict[str, bytes], change: Callable[[dict[str, Any]], None]
) -> None:
    document = json.loads(bundle[RUN])
    change(document)
    status, found = _verified(rehashed({**bundle, RUN: as_json(document)}))
    assert status == 1
    assert all(line.startswith(f"{RUN}: ") and "conclusion" in line for line in found["problems"])


@pytest.mark.slow_but("samples")
@pytest.mark.parametrize("name", [RUN, "plan.json", "licences.json", "samples.json"])
def test_a_second_value_for_a_key_is_named(bundle: dict[str, bytes], name: str) -> None:
    """Readers differ in which of the two they take."""
    first = re.search(rb'"(\w+)": ', bundle[name])
    assert first is not None
    twice = bundle[name][: first.start()] + first[0] + b'"jaxxx",\n ' + bundle[name][first.start() :]
    assert json.loads(twice) == json.loads(bundle[name])
    status, found = _verified(rehashed({**bundle, name: twice}))
    assert status == 1
    assert {line.partition(":")[0] for line in found["problems"]} & {name, f"{RUN} or samples.json"}


def test_a_part_that_no_bundle_has_is_named_though_its_manifest_lists_it(bundle: dict[str, bytes]) -> None:
    status, found = _verified(rehashed({**bundle, "READ_ME_FIRST.html": SCRIPT}))
    assert status == 1
    assert [line.partition(":")[0] for line in found["problems"]] == ["READ_ME_FIRST.html"] * len(found["problems"])
    status, found = _verified(rehashed({**bundle, "READ_ME_FIRST.html": SCRIPT}, fairlap="99.0"))
    assert status == 3
    assert "READ_ME_FIRST.html" in [line.partition(":")[0] for line in found["not_made_again"]]


@pytest.mark.slow_but("licences", "METHOD")
@pytest.mark.parametrize("name", [PAGE, CARD, METHOD, "licences.json", "environment.json"])
def test_a_part_that_was_taken_out_of_the_manifest_too_is_named(bundle: dict[str, bytes], name: str) -> None:
    status, found = _verified(rehashed({each: part for each, part in bundle.items() if each != name}))
    assert status == 1
    assert name in [line.partition(":")[0] for line in found["problems"]]


def test_other_words_for_a_part_and_more_of_a_manifest_are_named(bundle: dict[str, bytes]) -> None:
    for change in (_of_a_part, _with_key):
        manifest = json.loads(bundle[MANIFEST])
        change(manifest)
        encoded = as_json(manifest)
        own = {**bundle, MANIFEST: encoded, MANIFEST_HASH: f"{sha256(encoded)}\n".encode()}
        status, found = _verified(packed(own))
        assert status == 1
        assert [line.partition(":")[0] for line in found["problems"]] == [MANIFEST]


def _of_a_part(manifest: dict[str, Any]) -> None:
    manifest["parts"][0]["what"] = "how this was measured: by an accredited laboratory"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return _new_key(tmp_path / "ada")


def _new_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "x", "-f", path], check=True)
    return path


def test_a_signed_bundle_says_whose_it_is(stored: str, key: Path) -> None:
    output("bundle", stored, "-o", "x.fairlap", "--no-page", "--sign", key)
    assert json.loads(output("verify", "x.fairlap", "--signer", f"{key}.pub", "--json"))["signer"].startswith("ada.pub")
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    Path("allowed").write_text(f"# people\ngrace@example.org {_public(_new_key(Path('grace')))}\nada@x.org {public}\n")
    assert "signed by ada@x.org, ED25519 key SHA256:" in output("verify", "x.fairlap", "--signer", "allowed")
    assert "--signer" in output("verify", "x.fairlap")  # whose it is was not checked


def _public(key: Path) -> str:
    return " ".join(key.with_suffix(".pub").read_text().split()[:2])


def test_openssh_checks_the_signature_without_fairlap(stored: str, key: Path) -> None:
    output("bundle", stored, "-o", "x.fairlap", "--no-page", "--sign", key)
    parts = parts_of(Path("x.fairlap").read_bytes())
    Path("manifest.sshsig").write_bytes(parts["manifest.sshsig"])
    Path("allowed").write_text(f"ada {_public(key)}\n")
    words = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "ada", "-n", "fairlap", "-s", "manifest.sshsig"]
    assert subprocess.run(words, input=parts["manifest.json"], check=False).returncode == 0


def test_a_bundle_of_another_signer_or_of_none_is_refused(stored: str, key: Path) -> None:
    output("bundle", stored, "-o", "x.fairlap", "--no-page", "--sign", _new_key(Path("mallory").absolute()))
    assert refusal("verify", "x.fairlap", "--signer", f"{key}.pub").code == "E_SIGNER"
    Path("allowed").write_text(f'ada namespaces="git" {_public(Path("mallory"))}\n')
    assert refusal("verify", "x.fairlap", "--signer", "allowed").code == "E_SIGNER"  # allowed to sign other things
    output("bundle", stored, "-o", "plain.fairlap", "--no-page")
    assert refusal("verify", "plain.fairlap", "--signer", f"{key}.pub").code == "E_SIGNER"
    assert refusal("verify", "x.fairlap", "--signer", "nowhere.pub").code == "E_SIGNER"


def test_a_signature_does_not_fit_a_changed_bundle(stored: str, key: Path) -> None:
    output("bundle", stored, "-o", "x.fairlap", "--no-page", "--sign", key)
    parts = parts_of(Path("x.fairlap").read_bytes())
    Path("x.fairlap").write_bytes(rehashed({**parts, METHOD: b"other"}))
    done = here("verify", "x.fairlap", "--signer", f"{key}.pub")
    assert done.returncode == 1
    assert done.stdout.startswith("manifest.sshsig: ")
    assert "[E_BUNDLE_CHANGED]" in done.stderr
    Path("x.fairlap").write_bytes(rehashed({**parts, "manifest.sshsig": b"rubbish"}))
    assert here("verify", "x.fairlap", "--signer", f"{key}.pub").returncode == 1


def test_a_key_that_cannot_sign_and_a_machine_without_openssh_are_refused(
    stored: str, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rubbish").write_text("no key\n")
    for wrong in (tmp_path / "nowhere", tmp_path / "rubbish"):
        assert refusal("bundle", stored, "-o", "x.fairlap", "--no-page", "--sign", wrong).code == "E_SIGNER"
    output("bundle", stored, "-o", "x.fairlap", "--no-page", "--sign", key)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal("bundle", stored, "-o", "y.fairlap", "--no-page", "--sign", key).code == "E_SSH_KEYGEN"
    assert refusal("verify", "x.fairlap", "--signer", f"{key}.pub").code == "E_SSH_KEYGEN"
    assert not Path("y.fairlap").exists()
