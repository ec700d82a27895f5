"""Addresses behind proxies: what a caller writes is never used."""

from __future__ import annotations

from typing import Any

import pytest

from weir_ratelimit import ConfigurationError, client_address


def scope(peer: str | None, *lines: str) -> dict[str, Any]:
    """Returns a scope of ASGI with these lines of X-Forwarded-For."""
    headers = [(b"x-forwarded-for", line.encode()) for line in lines]
    client = None if peer is None else (peer, 1)
    return {"type": "http", "client": client, "headers": [*headers, (b"x-real-ip", b"6.6.6.6")]}


@pytest.mark.parametrize(
    ("hops", "lines", "found"),
    [
        (0, ["1.1.1.1"], "10.0.0.1"),
        (1, ["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
        (1, ["6.6.6.6", "1.1.1.1"], "1.1.1.1"),
        (2, ["6.6.6.6, 1.1.1.1", "10.0.0.2"], "1.1.1.1"),
        (2, ["1.1.1.1"], "10.0.0.1"),
        (1, ["6.6.6.6, nonsense"], "10.0.0.1"),
        (1, ["6.6.6.6, "], "10.0.0.1"),
        (1, [], "10.0.0.1"),
        (1, ["1.1.1.1:4711"], "1.1.1.1"),
        (1, ["[2001:db8:1:2:3::4]:4711"], "2001:db8:1:2::"),
        (1, ["fe80::1%eth0"], "fe80::"),
        (1, ["::ffff:1.2.3.4"], "1.2.3.4"),
        (1, ["1.2.3.4.5"], "10.0.0.1"),
        (1, ["01.2.3.4"], "10.0.0.1"),
    ],
)
def test_c41_to_c45_hops(hops: int, lines: list[str], found: str) -> None:
    assert client_address(hops=hops)(scope("10.0.0.1", *lines)) == found


@pytest.mark.parametrize(
    ("peer", "lines", "found"),
    [
        ("8.8.8.8", ["1.1.1.1"], "8.8.8.8"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1", "10.9.9.9"], "1.1.1.1"),
        ("10.0.0.1", ["nonsense, 10.9.9.9"], "10.0.0.1"),
        ("10.0.0.1", ["10.1.1.1"], "10.1.1.1"),
        ("::1", ["1.1.1.1"], "::"),
    ],
)
def test_c42_trusted(peer: str, lines: list[str], found: str) -> None:
    assert client_address(trusted=["10.0.0.0/8"])(scope(peer, *lines)) == found


@pytest.mark.parametrize(("prefix", "found"), [(32, "2001:db8::"), (64, "2001:db8:1:2::"), (128, "2001:db8:1:2:3::4")])
def test_c44_prefixes(prefix: int, found: str) -> None:
    assert client_address(ipv6_prefix=prefix)(scope("2001:db8:1:2:3::4")) == found


@pytest.mark.parametrize("peer", [None, "", "/run/socket"])
def test_c46_no_peer(peer: str | None) -> None:
    with pytest.raises(ConfigurationError, match="no peer"):
        client_address(hops=1)(scope(peer, "1.1.1.1"))
    with pytest.raises(ConfigurationError, match="no peer"):
        client_address()({"REMOTE_ADDR": peer})


def test_c43_the_peer_that_proxy_fix_hides() -> None:
    environ = {"REMOTE_ADDR": "6.6.6.6", "werkzeug.proxy_fix.orig": {"REMOTE_ADDR": "10.0.0.1"}}
    assert client_address()(environ) == "10.0.0.1"


@pytest.mark.parametrize(
    "options",
    [
        {"hops": -1},
        {"hops": 1.0},
        {"ipv6_prefix": 31},
        {"hops": 1, "trusted": ["::/0"]},
        {"trusted": "::1"},
        {"trusted": ["1.2.3.4/33"]},
    ],
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        client_address(**options)


def test_what_is_no_request() -> None:
    with pytest.raises(ConfigurationError, match="object"):
        client_address()(object())
