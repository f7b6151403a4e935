import http.server
import os

from greet import greet


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"ok" if self.path == "/health" else greet("world").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


port = int(os.environ["PORT"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("listening on", port)
server.serve_forever()
