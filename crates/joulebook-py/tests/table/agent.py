"""A node's agent over HTTP, in giul's shape, that says what it is told to."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse


class Agent:
    """Answers `/power` with `state`, or with a `body` of bytes, and with `status`, after `delay_s`. After so many
    answers it can hang (`hangs_after`) or be down (`dies_after`)."""

    def __init__(self):
        self.state = {"name": "Bench", "watts": 85.0, "memory_used_mib": 1000, "memory_total_mib": 16000,
                      "memory_free_mib": 15000, "utilization_pct": 50, "compute_apps": []}
        self.status, self.body, self.delay_s = 200, None, 0.0
        self.hangs_after = self.dies_after = None
        self.asked = []
        self._answers = 0
        self._over = threading.Event()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlparse(self.path)
                agent.asked.append((url.path, parse_qs(url.query)))
                if agent._is_down(url.path):
                    return
                time.sleep(agent.delay_s)
                status, body = 404, b'{"error": "try /power or /healthz"}'
                if url.path == "/power":
                    status = agent.status
                    gpu = int(parse_qs(url.query).get("gpu", ["0"])[0])
                    body = agent.body if agent.body is not None else json.dumps({**agent.state, "gpu": gpu}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # nobody waits any more

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that has gone

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def _is_down(self, path):
        """Whether this question gets no answer; the connection is closed then, at once or after a long while."""
        self._answers += path == "/power"
        if self.hangs_after is not None and self._answers > self.hangs_after:
            self._over.wait(30)
            return True
        return self.dies_after is not None and self._answers > self.dies_after

    def close(self):
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
