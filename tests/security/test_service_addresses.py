"""Strangers are told apart by address, in whatever form a socket or a proxy writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from attackedservice import attacked_service

from orderkit.core.platform.service_access import AccessSettings
from orderkit_standins.serve_platform import Running

BURST = 6


@pytest.mark.parametrize(
    ("strangers", "other"),
    [
        (["::ffff:198.51.100.7"], "::ffff:198.51.100.8"),
        (["::ffff:198.51.100.7", "198.51.100.7"], "198.51.100.8"),
        ([f"198.51.100.7:{port}" for port in range(4000, 4020)], "198.51.100.8:4000"),
        ([f"2001:db8:1:2::{number}" for number in range(1, 20)], "2001:db8:1:3::1"),
        (["2001:DB8:1:2::1", "2001:0db8:0001:0002::1"], "2001:db8:1:3::1"),
        (["fe80::1%eth0", "fe80::2%eth1"], "2001:db8::1"),
        ([f"[2001:db8:1:2::1]:{port}" for port in range(4000, 4020)], "[2001:db8:1:3::1]:80"),
    ],
    ids=["mapped", "mapped and not", "port", "network", "spelling", "zone", "port of IPv6"],
)
def test_one_stranger_is_limited_and_another_is_not(
    platform: Running, tmp_path: Path, strangers: list[str], other: str
) -> None:
    access = AccessSettings(requests_per_minute=1, trusted_proxies=("127.0.0.1",))
    with attacked_service(platform, tmp_path, access) as service:

        def ask(address: str) -> int:
            headers = {"X-Forwarded-For": address}
            return service.send("GET", "/v1/orders", headers=headers).status_code

        answers = [ask(strangers[number % len(strangers)]) for number in range(2 * BURST)]

        assert answers[-1] == 429, answers
        assert ask(other) == 401
