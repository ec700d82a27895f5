"""Nodes that DNS adds."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from conftest import Scripted

from weir_ratelimit import Client

OK = {"allowed": True, "reason": "REASON_OK"}


class Dns:
    """A DNS server that answers every name with its addresses."""

    def __init__(self, *ips: str) -> None:
        self.ips = ips
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                query, peer = self._socket.recvfrom(512)
                end = query.index(0, 12) + 5
                ips = self.ips if query[end - 4 : end - 2] == b"\0\1" else ()
                records = [bytes([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]) + socket.inet_aton(ip) for ip in ips]
                head = query[:2] + bytes([0x81, 0x80, 0, 1, 0, len(records), 0, 0, 0, 0])
                self._socket.sendto(head + query[12:end] + b"".join(records), peer)


def test_c26_a_node_that_dns_adds_is_asked_within_five_seconds(scripted: Scripted) -> None:
    port = scripted.target.rpartition(":")[2]
    second, dns = Scripted(f"127.0.0.2:{port}"), Dns("127.0.0.1")
    try:
        for node in (scripted, second):
            node.answer(**OK)
        with Client(f"dns://{dns.address}/weir.test:{port}", on_failure="error", timeout=5) as weir:
            assert weir.allow("search")
            dns.ips = ("127.0.0.1", "127.0.0.2")
            # The age of a connection is over.
            scripted.do(goaway={})
            end = time.monotonic() + 6
            while not second.log():
                assert weir.allow("search").source == "weir"
                assert time.monotonic() < end
                time.sleep(0.02)
    finally:
        dns.close()
        second.end()
