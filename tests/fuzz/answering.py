"""A server on loopback that answers with whatever bytes it is given."""

from __future__ import annotations

import socket
import threading
from contextlib import closing


class Answering:
    """A server on loopback that answers every request with the bytes of `raw`, then closes."""

    def __init__(self) -> None:
        self.raw = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with closing(connection):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(2)
            head = b""
            while b"\r\n\r\n" not in head:
                part = connection.recv(65536)
                if not part:
                    return
                head += part
            start, _, body = head.partition(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in start.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
            )
            while len(body) < length:
                body += connection.recv(65536)
            connection.sendall(self.raw)
        except OSError:
            return  # the other side hung up first

    def close(self) -> None:
        self._listener.close()


def http(
    body: bytes, *, status: str = "200 OK", kind: str = "application/json; charset=utf-8", **headers: str
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\nConnection: close\r\n\r\n" + body
