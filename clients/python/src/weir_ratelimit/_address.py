"""The address of the caller of a request, as a consumer. Only what proxies have written that are known counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from ._errors import ConfigurationError

Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network


def client_address(*, hops: int = 0, trusted: Sequence[str] = (), ipv6_prefix: int = 64) -> Callable[[Any], str]:
    """Returns a function that finds the address of the caller, for the option `consumer` of a middleware.

    `hops` is how many proxies stand in front of this program, each of which appends to X-Forwarded-For. `trusted` has
    their networks instead, such as `10.0.0.0/8`: the caller is the last entry that is in none of them. Without either,
    it is the peer of the socket. An IPv6 address is cut to its network.
    """
    _check("hops", hops, 0, 100)
    _check("ipv6_prefix", ipv6_prefix, 32, 128)
    if isinstance(trusted, str):
        raise ConfigurationError('trusted: not a list of networks, such as ["10.0.0.0/8"]')
    if hops and trusted:
        raise ConfigurationError("trusted: set it or hops, not both")
    networks = [_network(entry) for entry in trusted]

    def consumer(request: Any) -> str:
        peer, forwarded = _asked_by(request)
        socket = parse_ip(peer or "")
        if socket is None:
            raise ConfigurationError(
                "client_address: the request has no peer address; give the middleware another consumer function"
            )
        found = _by_trust(socket, forwarded, networks) if networks else _by_hops(forwarded, hops)
        return _cut(found or socket, ipv6_prefix)

    return consumer


def parse_ip(entry: str) -> Address | None:
    """Reads an address, also with a port, brackets or a zone. IPv4 in IPv6 is IPv4."""
    text = entry.strip()
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::[0-9]{1,5})?", text)
    text = bracketed[1] if bracketed else re.sub(r"^([0-9.]+):[0-9]{1,5}$", r"\1", text)
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _by_hops(forwarded: str, hops: int) -> Address | None:
    """Counts from the right: the first entries are whatever the caller has written."""
    entries = forwarded.split(",")
    return parse_ip(entries[-hops]) if 0 < hops <= len(entries) else None


def _by_trust(socket: Address, forwarded: str, networks: list[_Network]) -> Address | None:
    last = socket
    for entry in reversed(forwarded.split(",")):
        if not any(last in network for network in networks):
            return last
        address = parse_ip(entry)
        if address is None:
            return None
        last = address
    return last


def _cut(address: Address, prefix: int) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return str(ip_network((address, prefix), strict=False).network_address)


def _asked_by(request: Any) -> tuple[str | None, str]:
    """Finds the peer and X-Forwarded-For in a request of ASGI, Starlette, Django, DRF, Flask or WSGI."""
    found = getattr(request, "META", None) or getattr(request, "environ", None) or getattr(request, "scope", request)
    if not isinstance(found, dict):
        raise ConfigurationError(f"client_address: {type(request).__name__} is no request that it knows")
    if "type" not in found:
        # Werkzeug's ProxyFix writes what a proxy said over the peer.
        peer = found.get("werkzeug.proxy_fix.orig", found).get("REMOTE_ADDR")
        return peer, found.get("HTTP_X_FORWARDED_FOR", "")
    lines = [value.decode("latin-1") for name, value in found.get("headers", ()) if name == b"x-forwarded-for"]
    client = found.get("client")
    return (client[0] if client else None), ",".join(lines)


def _check(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{name}: {value!r} is not a whole number from {least} to {most}")


def _network(entry: str) -> _Network:
    try:
        return ip_network(entry, strict=False)
    except ValueError as error:
        text = f'trusted: {entry!r} is not an address or a network, such as "10.0.0.0/8"'
        raise ConfigurationError(text) from error
