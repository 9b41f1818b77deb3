"""gRPC for one caller on one connection: what Terraform needs of a plugin, over HTTP/2 by h2.

The connection is encrypted as go-plugin has it ("AutoMTLS"): each side shows a certificate made for this run alone,
and takes only the other's.
"""

from __future__ import annotations

import base64
import os
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)

Handler = Callable[[bytes], bytes]

_SHUTDOWN: Final = "/plugin.GRPCController/Shutdown"
_OK, _UNIMPLEMENTED = "0", "12"  # gRPC's status codes
_WAITS: Final = 30.0  # for Terraform to call; it does so at once
_PREFIX: Final = struct.Struct(">BI")  # of a message: not compressed, its length


def serve(handlers: Mapping[str, Handler], certificate: Path, announce: Callable[[Path, str], None]) -> None:
    """Answer one caller until it says that it has done, or goes.

    `announce` is told where to call, and what we show as the first line has it (empty where the caller asks for no
    encryption).
    """
    caller = os.environ.get("PLUGIN_CLIENT_CERT", "")
    with (
        TemporaryDirectory(prefix="costguard-stand-in-") as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening,
    ):
        path = Path(folder) / "socket"
        listening.bind(str(path))
        listening.listen(1)
        listening.settimeout(_WAITS)
        announce(path, _shown(certificate) if caller else "")
        try:
            plain, _ = listening.accept()
        except TimeoutError:
            return
        plain.settimeout(None)
        with plain if not caller else _taking(caller, certificate).wrap_socket(plain, server_side=True) as calling:
            _Connection(calling, handlers).run()


def _taking(caller: str, certificate: Path) -> ssl.SSLContext:
    """Encryption that takes this caller (PEM) alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(cadata=caller)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context


def _shown(certificate: Path) -> str:
    text, end, _ = certificate.read_text("ascii").partition("-----END CERTIFICATE-----")
    return base64.b64encode(ssl.PEM_cert_to_DER_cert(text + end)).decode().rstrip("=")


class _Connection:
    def __init__(self, calling: socket.socket, handlers: Mapping[str, Handler]) -> None:
        self._socket = calling
        self._handlers = handlers
        self._http = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._paths: dict[int, str] = {}
        self._bodies: dict[int, bytearray] = {}
        self._left: dict[int, tuple[bytes, str]] = {}  # stream → what is not sent yet, and the status after it
        self._ending = False

    def run(self) -> None:
        """Until the caller goes, or has asked for the end and got its answer."""
        self._http.initiate_connection()
        self._flush()
        while not (self._ending and not self._left):
            try:
                data = self._socket.recv(1 << 16)
            except (ConnectionError, ssl.SSLError):
                return
            if not data:
                return
            for event in self._http.receive_data(data):
                self._happened(event)
            self._continue()
            self._flush()

    def _happened(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(stream), headers=list(headers)):
                self._paths[stream] = next(value.decode() for name, value in headers if name == b":path")
                self._bodies[stream] = bytearray()
                if self._paths[stream] not in {*self._handlers, _SHUTDOWN}:
                    self._refuse(stream)
            case DataReceived(stream_id=int(stream), data=bytes(data), flow_controlled_length=int(length)):
                self._http.acknowledge_received_data(length, stream)
                if stream in self._bodies:
                    self._bodies[stream] += data
            case StreamEnded(stream_id=int(stream)) if stream in self._bodies:
                self._answer(stream)
            case StreamReset(stream_id=int(stream)):
                self._forget(stream)
            case ConnectionTerminated():
                self._ending = True
            case WindowUpdated() | _:
                pass

    def _refuse(self, stream: int) -> None:
        """A call that nobody here takes, of which the caller may still be sending."""
        status = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", _UNIMPLEMENTED)]
        self._http.send_headers(stream, status, end_stream=True)
        self._forget(stream)

    def _answer(self, stream: int) -> None:
        path, body = self._paths[stream], bytes(self._bodies[stream][_PREFIX.size :])
        self._forget(stream)
        self._http.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        if path == _SHUTDOWN:
            self._ending = True
            self._left[stream] = (_PREFIX.pack(0, 0), _OK)
            return
        message = self._handlers[path](body)
        self._left[stream] = (_PREFIX.pack(0, len(message)) + message, _OK)

    def _continue(self) -> None:
        """Send as much of each answer as its caller has room for."""
        for stream, (body, status) in list(self._left.items()):
            rest = body
            while rest:
                room = min(self._http.local_flow_control_window(stream), self._http.max_outbound_frame_size)
                if room <= 0:
                    break
                self._http.send_data(stream, rest[:room])
                rest = rest[room:]
            if rest:
                self._left[stream] = (rest, status)
                continue
            self._http.send_headers(stream, [("grpc-status", status)], end_stream=True)
            del self._left[stream]

    def _forget(self, stream: int) -> None:
        for kept in (self._paths, self._bodies, self._left):
            kept.pop(stream, None)

    def _flush(self) -> None:
        with suppress(ConnectionError):
            self._socket.sendall(self._http.data_to_send())
