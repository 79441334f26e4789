"""Kubernetes' own functions of CEL rules: what each says of a value, and its error if it fails."""

from __future__ import annotations

from typing import Any

import pytest

from kubeschema.cel import RuleSet
from kubeschema.cel.type_shapes import Unbound, duration, timestamp

NUMBERS = {"type": "array", "maxItems": 9, "items": {"type": "integer"}}
TEXT = {"type": "string"}
URL = "http://a.b:80/c?d=e"
NO_PREFIX = 'netip.ParsePrefix("{}"): {}'


def ruled(value: Any, rule: str) -> RuleSet:
    field = NUMBERS if isinstance(value, list) else TEXT
    properties = {"spec": {**field, "x-kubernetes-validations": [{"rule": rule}]}}
    return RuleSet({"type": "object", "properties": properties})


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.sum() == 6", [1, 2, 3]),
        ("self.sum() == 0", []),
        ("self.min() == 1", [2, 1]),
        ("self.max() == 2", [2, 1]),
        ("self.isSorted()", [1, 1, 2]),
        ("!self.isSorted()", [2, 1]),
        ("self.indexOf(1) == 1", [2, 1, 1]),
        ("self.indexOf(9) == -1", [2]),
        ("self.lastIndexOf(1) == 2", [2, 1, 1]),
        ("self.lastIndexOf(2) == 0", [2]),
        ("self.lastIndexOf(9) == -1", [2]),
        ("self.find('[0-9]+') == '12'", "a12b"),
        ("self.find('z') == ''", "a"),
        ("self.findAll('[0-9]') == ['1', '2']", "a12"),
        ("self.findAll('[0-9]', 1) == ['1']", "a12"),
        ("self.findAll('[0-9]', 2) == ['1', '2']", "a12"),
        ("self.findAll('[0-9]', 0) == []", "a12"),
        ("self.findAll('[0-9]', -1) == ['1', '2']", "a12"),
        ("quantity(self).asInteger() == 2", "2"),
        ("quantity(self).isInteger()", "2000m"),
        ("!quantity(self).isInteger()", "1.5"),
        ("sign(quantity(self)) == -1", "-1"),
        ("sign(quantity(self)) == 0", "0"),
        ("sign(quantity(self)) == 1", "1m"),
        ("quantity(self).add(1).compareTo(quantity('2')) == 0", "1"),
        ("quantity(self).add(quantity('1')).compareTo(quantity('2')) == 0", "1"),
        ("quantity(self).sub(3).compareTo(quantity('-2')) == 0", "1"),
        ("quantity(self).sub(quantity('3')).compareTo(quantity('-2')) == 0", "1"),
        ("quantity(self).compareTo(quantity('2')) == -1", "1"),
        ("quantity(self).isGreaterThan(quantity('999m'))", "1"),
        ("!quantity(self).isGreaterThan(quantity('1'))", "1"),
        ("quantity(self).isLessThan(quantity('1001m'))", "1"),
        ("!quantity(self).isLessThan(quantity('1'))", "1"),
        ("quantity(self).asApproximateFloat() == 1.5", "1.5"),
        ("url(self).getScheme() == 'http'", URL),
        ("url(self).getHost() == 'a.b:80'", URL),
        ("url(self).getHostname() == 'a.b'", URL),
        ("url(self).getPort() == '80'", URL),
        ("url(self).getPort() == ''", "http://a.b/c"),
        ("url(self).getEscapedPath() == '/c'", URL),
        ("url(self).getQuery() == {'d': ['e']}", URL),
        ("ip(self).family() == 6", "::1"),
        ("ip(self).family() == 4", "1.2.3.4"),
        ("!isIP(self)", "::ffff:1.2.3.4"),
        ("!isIP(self)", "fe80::1%eth0"),
        ("ip(self).isLoopback()", "127.0.0.1"),
        ("ip(self).isUnspecified()", "::"),
        ("ip(self).isLinkLocalUnicast()", "169.254.1.1"),
        ("ip(self).isLinkLocalMulticast()", "224.0.0.1"),
        ("ip(self).isLinkLocalMulticast()", "ff02::1"),
        ("!ip(self).isLinkLocalMulticast()", "224.0.1.1"),
        ("ip(self).isGlobalUnicast()", "1.2.3.4"),
        ("!ip(self).isGlobalUnicast()", "255.255.255.255"),
        ("!ip(self).isGlobalUnicast()", "127.0.0.1"),
        ("!ip(self).isGlobalUnicast()", "::"),
        ("!ip(self).isGlobalUnicast()", "224.0.1.1"),
        ("!ip(self).isGlobalUnicast()", "169.254.1.1"),
        ("ip.isCanonical(self)", "::1"),
        ("!ip.isCanonical(self)", "0::1"),
        ("!isCIDR(self)", "10.0.0.0"),
        ("!isCIDR(self)", "10.0.0.0/08"),
        ("cidr(self).containsIP('10.1.1.1')", "10.0.0.0/8"),
        ("cidr(self).containsIP(ip('10.1.1.1'))", "10.0.0.0/8"),
        ("!cidr(self).containsIP('11.1.1.1')", "10.0.0.0/8"),
        ("cidr(self).containsCIDR('10.1.0.0/16')", "10.0.0.0/8"),
        ("cidr(self).containsCIDR('10.0.0.0/8')", "10.0.0.0/8"),
        ("!cidr(self).containsCIDR('10.0.0.0/7')", "10.0.0.0/8"),
        ("!cidr(self).containsCIDR('11.0.0.0/16')", "10.0.0.0/8"),
        ("!cidr(self).containsCIDR(cidr('::/96'))", "10.0.0.0/8"),
        ("cidr(self).prefixLength() == 8", "10.0.0.0/8"),
        ("cidr(self).masked() == cidr('10.0.0.0/8')", "10.1.2.3/8"),
        ("cidr(self).ip() == ip('10.1.2.3')", "10.1.2.3/8"),
    ],
)
def test_a_rule_holds(rule: str, value: Any) -> None:
    found = ruled(value, rule).check({"spec": value})

    assert not found.gaps
    assert not found.broken


@pytest.mark.parametrize(
    ("rule", "value", "told"),
    [
        ("self.sum() > 0", [2**63 - 1, 1], "integer overflow"),
        ("self.min() == 1", [], "min called on empty list"),
        ("self.max() == 1", [], "max called on empty list"),
        ("quantity(self).asInteger() == 2", "1.5", "cannot convert value to integer"),
        ("url(self).getHost() == ''", "example", 'parse "example": invalid URI for request'),
        ("ip(self).family() == 4", "x", 'ParseAddr("x"): unable to parse IP'),
        (
            "ip(self).family() == 4",
            "::ffff:1.2.3.4",
            'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
        ),
        (
            "ip(self).family() == 6",
            "fe80::1%eth0",
            'IP address "fe80::1%eth0" with zone value is not allowed',
        ),
        ("cidr(self).prefixLength() == 8", "x", NO_PREFIX.format("x", "no '/'")),
        (
            "cidr(self).prefixLength() == 8",
            "10.0.0.0/08",
            NO_PREFIX.format("10.0.0.0/08", "bad bits after slash"),
        ),
    ],
)
def test_a_rule_that_fails_is_told_in_the_servers_words(rule: str, value: Any, told: str) -> None:
    (broken,) = ruled(value, rule).check({"spec": value}).broken

    assert told in broken.problem.message


def test_a_sum_up_to_the_largest_integer_is_no_overflow() -> None:
    assert not ruled([], "self.sum() > 0").check({"spec": [2**63 - 2, 1]}).broken


@pytest.mark.parametrize(
    ("rule", "field", "value", "why"),
    [
        ("[self].isSorted()", {"type": "string", "format": "date-time"}, "2020-01-01T00:00:00Z",
         "a function of lists is called on times"),
        ("self > 1.0", {"type": "number"}, 10**400, "is beyond a double"),
        ("size(self) > 0", {"type": "string", "format": "byte"}, "&", "'&' is not base64"),
        ("self > duration('0s')", {"type": "string", "format": "duration"}, "1x",
         "'1x' is not a usual duration"),
    ],
)  # fmt: skip
def test_a_value_that_the_library_would_read_otherwise_is_a_gap(
    rule: str, field: dict[str, Any], value: Any, why: str
) -> None:
    properties = {"spec": {**field, "x-kubernetes-validations": [{"rule": rule}]}}

    found = RuleSet({"type": "object", "properties": properties}).check({"spec": value})

    assert not found.broken
    assert [why in gap.why for gap in found.gaps] == [True]


@pytest.mark.parametrize("text", ["1x", "", "1h 30m", "h", "0.1ns", "99999999999h"])
def test_a_duration_that_cannot_be_held_is_refused(text: str) -> None:
    with pytest.raises(Unbound):
        duration(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2020-01-01", "2020-01-01T00:00:00Z"),
        ("2020-01-01T01:00:00.5Z", "2020-01-01T01:00:00.500Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_read_in_the_years_of_the_calendar(text: str, written: str) -> None:
    assert timestamp(text).ToJsonString() == written


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"])
def test_a_time_beyond_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(Unbound):
        timestamp(text)
