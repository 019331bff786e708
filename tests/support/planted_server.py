"""A small server of OpenAI's completions as a program, which goes wrong on request: what fairlap starts in tests.

    python planted_server.py --port 8000 --each-ms 2 --fault never

It shares no code with fairlap. ``--pids FILE`` gets the numbers of its process and of those that it starts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FAULTS = ("", "never", "silent", "dies", "midway", "child", "spins", "prints", "once")
LAST_WORDS = "no such model here"
STATUS = 3
_MIB = 2**20

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--fault", choices=FAULTS, default="")
parser.add_argument("--after", type=int, default=0, help="answers before it dies midway")
parser.add_argument("--first-ms", type=float, default=0.0)
parser.add_argument("--each-ms", type=float, default=0.0)
parser.add_argument("--ready-after", type=float, default=0.0)
parser.add_argument("--hold-mib", type=int, default=0, help="memory while it answers")
parser.add_argument("--child-mib", type=int, default=0)
parser.add_argument("--pids", type=Path)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answered = 0

    def log_message(self, *_words: object) -> None: ...

    def do_GET(self) -> None:
        if given.fault == "silent":
            time.sleep(1000)
        is_ready = given.fault != "never" and time.monotonic() - began_s >= given.ready_after
        self.send_response(200 if is_ready else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.answered += 1
        if given.fault == "midway" and Handler.answered > given.after:
            os.kill(os.getpid(), signal.SIGKILL)
        held = bytes(range(256)) * (given.hold_mib * _MIB // 256)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seed = zlib.crc32(asked["prompt"].encode())
        time.sleep(given.first_ms / 1e3)
        for place in range(asked["max_tokens"]):
            time.sleep(given.each_ms / 1e3 if place else 0)
            choice = {"text": f" {seed + place}", "finish_reason": None}
            self.event(json.dumps({"choices": [choice], "usage": {"completion_tokens": place + 1}}))
        self.event(json.dumps({"choices": [{"text": "", "finish_reason": "length"}]}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")
        del held

    def event(self, data: str) -> None:
        text = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(text), text))


def started_child() -> int:
    """Start a daemon that has its own session and no environment, and return when it holds memory."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    if os.fork() == 0:
        os.setsid()
        if pid := os.fork():
            os.write(write, f"{pid}\n".encode())
            os._exit(0)
        code = f"held = bytes(range(256)) * {given.child_mib * _MIB // 256}\nimport os, time\n"
        code += f"os.write({write}, b'held')\nos.close({write})\ntime.sleep(1000)"
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", code], {})
    os.wait()
    said = b""
    while not (b"held" in said and b"\n" in said):
        said += os.read(read, 32)
    os.close(read)
    os.close(write)
    return int(said.replace(b"held", b""))


def spin() -> None:
    while True:
        pass


given = parser.parse_args()
began_s = time.monotonic()
print(f"listening on {given.port}", flush=True)
if given.fault == "dies":
    print(LAST_WORDS, file=sys.stderr, flush=True)
    sys.exit(STATUS)
if given.fault == "once" and given.pids.exists():
    sys.exit(STATUS)
pids = [os.getpid(), *([started_child()] if given.fault == "child" else [])]
if given.pids:
    with given.pids.open("a") as file:
        file.writelines(f"{pid}\n" for pid in pids)
if given.fault == "spins":
    threading.Thread(target=spin, daemon=True).start()
while given.fault == "prints":
    sys.stdout.write("x" * _MIB)
with ThreadingHTTPServer(("127.0.0.1", given.port), Handler) as server:
    server.serve_forever()
