"""Addresses that only this machine reaches: the client and the server of a catalog treat them in the same way."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """True if a host name or an IP address, an IPv6 address in brackets or not, is this machine's loopback."""
    if host.casefold().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
