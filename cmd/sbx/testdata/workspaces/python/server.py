import http.server
import json
import os
import sys
import threading

from app.routes import route

with open("config.json") as f:
    config = json.load(f)

# What a program says that may start no further process.
if os.path.exists("crowded"):
    with open("crowded") as f:
        left = int(f.read())
    if left > 0:
        with open("crowded", "w") as f:
            f.write(str(left - 1))
        raise RuntimeError("can't start new thread")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if os.path.exists("hang"):
            os.remove("hang")
            self.server.hangs = True
        if self.server.hangs:
            threading.Event().wait()
        body = b"ok" if self.path == "/health" else route(self.path).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        print(self.requestline, flush=True)


class Server(http.server.HTTPServer):
    hangs = False


server = Server(("127.0.0.1", int(os.environ["PORT"])), Handler)
print("listening", flush=True)
server.serve_forever()
