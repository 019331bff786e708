"""A stand-in for a language model's server: OpenAI's completions, a token every 2 ms. It prints its port."""

import json
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the first token waits for an acknowledgement, 40 ms

    def log_message(self, *_words: object) -> None: ...

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for place in range(asked["max_tokens"]):
            time.sleep(0.002)
            text, usage = f" {zlib.crc32(asked['prompt'].encode()) + place}", {"completion_tokens": place + 1}
            self.event(json.dumps({"choices": [{"text": text}], "usage": usage}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: str) -> None:
        text = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(text), text))


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
