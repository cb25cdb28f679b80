"""A server on the loopback that hands out files: it resumes, breaks off and changes as told."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """What it serves, by path, and what it was asked."""

    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"
        self.files = {}
        self.tags = {}
        self.ranges = []  # of each request; None: all of the file
        self.skips = 0  # bytes by which it resumes too late
        self.compares = True  # whether it resumes only the file that was begun
        self.breaks_after = []  # bytes after which the next answers end too early
        self.when_asked = lambda: None

    def serves(self, path, content, tag="one"):
        self.files[path], self.tags[path] = content, f'"{tag}"'
        return self.address + path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        served, path = self.server.served, self.path.partition("?")[0]
        served.ranges.append(self.headers.get("Range"))
        served.when_asked()
        if path not in served.files:
            self.send_error(404)
            return
        content, tag = served.files[path], served.tags[path]
        begin, wanted = 0, self.headers.get("Range")
        if wanted and (not served.compares or self.headers.get("If-Range") == tag):
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
        if begin and begin >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        begin += served.skips if begin else 0
        self.send_header("Content-Length", str(len(content) - begin))
        self.send_header("ETag", tag)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        broken = served.breaks_after.pop(0) if served.breaks_after else None
        self.wfile.write(content[begin : None if broken is None else begin + broken])
        if broken is not None:
            self.close_connection = True

    def log_message(self, *words):
        pass


@contextmanager
def file_server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.served = FileServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
