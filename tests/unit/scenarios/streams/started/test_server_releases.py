"""Two releases of one server race, each in an environment of its own, from wheels of a small server."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine_marks import needs, needs_proc
from stream_races import file_of_prompts, raced_by_name
from wheels import offline_variables, write_wheel

needs("httpx", reason="needs the extra streams; `make test` installs it and runs this")

pytestmark = [needs_proc, pytest.mark.slow]

RELEASE = r"""
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    def log_message(self, *words): pass
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(FIRST_MS / 1e3)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream"); self.send_header("Connection", "close")
        self.end_headers()
        for place in range(asked["max_tokens"]):
            choice = {"text": f" {len(asked['prompt']) * 31 + place}", "finish_reason": None}
            usage = {"completion_tokens": place + 1}
            self.wfile.write(b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

def main():
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_two_releases_of_one_server_race_each_in_its_own_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    wheels = tmp_path / "wheels"
    for version, first_ms in (("1.0", 40), ("2.0", 4)):
        files = {
            "tiny_server.py": RELEASE.replace("FIRST_MS", str(first_ms)),
            f"tiny_server-{version}.dist-info/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server:main\n",
        }
        write_wheel(wheels, "tiny_server", version, files)
    for variable, value in offline_variables(wheels).items():
        monkeypatch.setenv(variable, value)
    old, new = (
        f'serve:command="tiny-server {{port}}":model=m:with=tiny-server=={each}:find_links={wheels}'
        for each in ("1.0", "2.0")
    )
    found = raced_by_name(file_of_prompts(tmp_path), old, new, rate=100.0, trial=0.2, blocks=6)
    rows = {row.contestant: row for row in found.rows}
    assert [rows[each].version for each in (old, new)] == ["1.0", "2.0"]
    assert rows[old].verdict == "slower"
    assert {row.outcome for row in found.rows} == {"finished"}
    assert {row.processes_finished for row in found.rows} == {6}
