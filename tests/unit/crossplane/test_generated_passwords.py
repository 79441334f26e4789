"""A generated password is the same in every round, and the observed Secret decides."""

from __future__ import annotations

import base64

from orderkit.stations import (
    Manifest,
    Resource,
    State,
    StationRequest,
    StationResponse,
    generated_password,
    secret,
)

SEED = secret({"seed": "s" * 32})


def password(
    observed: Manifest | None = None,
    seed: tuple[Manifest, ...] | None = (SEED,),
    *,
    uid: str = "u-1",
    key: str = "password",
) -> tuple[str | None, StationResponse]:
    meta = {"name": "one", "namespace": "team-a", "uid": uid}
    resources = {} if observed is None else {"credentials": Resource(observed)}
    request = StationRequest(
        State(Resource({"metadata": meta}), resources),
        required={} if seed is None else {"orderkit-password-seed": seed},
    )
    response = StationResponse.to(request)
    return generated_password(request, response, "credentials", key), response


def test_it_is_the_same_until_the_secret_is_observed_and_after_it_was_deleted() -> None:
    first, second = password()[0], password()[0]

    assert first == second
    assert first is not None
    assert len(first) == 32
    assert first.isalnum()
    assert password(secret({"password": first}))[0] == first


def test_it_differs_by_order_key_and_seed() -> None:
    other = secret({"seed": "t" * 32})
    values = {
        password()[0],
        password(uid="u-2")[0],
        password(key="root")[0],
        password(seed=(other,))[0],
    }

    assert len(values) == 4


def test_the_observed_secret_decides_whatever_the_seed_is() -> None:
    kept = secret({"password": "chosen by somebody"})

    assert password(kept, ())[0] == "chosen by somebody"
    assert password(kept, None)[0] == "chosen by somebody"


def test_the_seed_is_asked_for_in_every_call() -> None:
    value, response = password(seed=None)
    _, settled = password(secret({"password": "x"}))

    assert value is None
    assert not response.results
    assert response.requirements == settled.requirements
    assert response.requirements["orderkit-password-seed"].namespace == "crossplane-system"


def test_without_a_seed_the_order_is_refused_and_the_seed_never_shown() -> None:
    for seeds in ((), (secret({"seed": "too short"}),), ({"data": {"seed": "%%%"}},)):
        value, response = password(seed=seeds)

        assert value is None
        assert "crossplane-system/orderkit-password-seed has no seed" in response.results[0].message
        assert "too short" not in response.results[0].message


def test_a_broken_value_in_the_secret_is_derived_again() -> None:
    broken: Manifest = {"data": {"password": "%%%"}}

    assert password(broken)[0] == password()[0]
    assert password({"data": {"password": base64.b64encode(b"").decode()}})[0] == password()[0]
