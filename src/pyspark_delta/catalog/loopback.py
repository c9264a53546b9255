"""Loopback addresses, which only this machine can reach. The client and the server of a catalog share this check."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Return True for `localhost` and for a loopback IP address; an IPv6 address may be in brackets."""
    if host.casefold().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
