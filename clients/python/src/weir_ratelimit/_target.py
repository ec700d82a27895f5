"""Targets: where Weir is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address

from ._errors import ConfigurationError

_FORMS = '"host:port", "dns:///host:port", "dns://SERVER/host:port", "ipv4:…", "ipv6:…" or "unix:PATH"'


@dataclass(frozen=True, slots=True)
class Target:
    """A target that was checked."""

    text: str
    #: The target as gRPC reads it.
    uri: str
    #: Whether all addresses are of this machine.
    loopback: bool


def parse_target(text: object) -> Target:
    """Reads a target."""
    if not isinstance(text, str):
        raise _refused(text)
    scheme = re.fullmatch(r"(dns|ipv4|ipv6|unix):(.*)", text, re.DOTALL)
    if scheme is None:
        return _named(text, f"dns:///{text}", text)
    kind, rest = scheme.groups()
    if kind == "unix":
        if not rest:
            raise _refused(text)
        return Target(text, text, True)
    if kind == "dns":
        # `dns:8081` is a host named "dns".
        if rest.isdigit():
            return _named(text, f"dns:///{text}", text)
        return _named(text, text, re.sub(r"^//[^/]*/", "", rest))
    hosts = [_host(address) for address in rest.split(",")]
    version = 4 if kind == "ipv4" else 6
    if not all(host is not None and _version(host) == version for host in hosts):
        raise _refused(text)
    return Target(text, text, all(_is_loopback(host or "") for host in hosts))


def _named(text: str, uri: str, name: str) -> Target:
    host = _host(name)
    if not host or re.search(r"[/\s]", host) or (":" in host and _version(host) != 6):
        raise _refused(text)
    return Target(text, uri, _is_loopback(host))


def _host(address: str) -> str | None:
    """Returns the host. The port is required: gRPC would take 443."""
    match = re.fullmatch(r"(?:\[([^\]]*)\]|([^\[\]:]*)):([0-9]{1,5})", address)
    if match is None or not 1 <= int(match[3]) <= 65_535:
        return None
    return match[1] or match[2] or ""


def _version(host: str) -> int | None:
    try:
        return ip_address(host).version
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_version(host) is not None and ip_address(host).is_loopback)


def _refused(text: object) -> ConfigurationError:
    return ConfigurationError(f"target: {text!r} is not {_FORMS}")
