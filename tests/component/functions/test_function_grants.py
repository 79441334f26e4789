"""What a function's program gets besides: a granted network, credentials, layers of zstd."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import functionimages
import pytest
import yaml
from functionimages import NAME, asked
from functionprograms import DIGEST, KIT, own_cache, tiny_function
from ociregistry import OwnRegistry, Pushed, own_registry

from compositions.composed import Composed, World, steps_of
from compositions.pipeline import compose
from compositions.station import Selector, Station
from ground.errors import InvalidInputError, RefusedError
from ground.objects.kube_objects import Kind, Manifest
from orderkit.adapters.functions.local_functions import granted_host, program_function
from orderkit.adapters.functions.program_store import add_program, program_start, stored_program
from orderkit.cli.main import run
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

backports = pytest.importorskip("backports.zstd")
TOKEN = "tk-9f31c07be2d84a5f"
XR = {
    **asked("compose").xr,
    "metadata": {"name": "x", "uid": "1", "labels": {"crossplane.io/composite": "x"}},
}
SECRET: Manifest = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "cloud", "namespace": "functions"},
    "data": {"token": base64.b64encode(TOKEN.encode()).decode(), "user": "ZXZl"},
}
SIGN_IN = yaml.safe_load(
    """
step: sign in
functionRef: {name: function-tiny}
input: {apiVersion: tiny.example.org/v1, kind: Input, do: sign in}
credentials:
  - {name: account, source: Secret, secretRef: {namespace: functions, name: cloud}}
  - {name: nothing, source: None}
"""
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    with tiny_function(tmp_path_factory.mktemp("cache")) as function:
        yield function


@pytest.fixture(scope="module")
def registry(tiny: Station) -> Iterator[tuple[OwnRegistry, Pushed]]:
    del tiny  # skips where nothing can be confined
    with own_registry() as pair:
        yield pair


def says(station: Station, do: str, **more: object) -> list[str]:
    return [result.message for result in station(asked(do, **more)).results]


def added(folder: Path, reference: str, *options: str) -> tuple[Path, str]:
    """Add a function to an empty pack; return the pack and the digest."""
    pack = folder / "pack"
    if not pack.exists():
        assert run(["init", str(pack), "--no-git"]) == 0
    assert run(["functions", "add", reference, "--pack", str(pack), *options]) == 0
    declared = yaml.safe_load((pack / f"gitops/functions/{NAME}.yaml").read_text())
    return pack, declared["metadata"]["annotations"]["orderkit.dev/runs"]


def push(registry: Pushed, tag: str, layers: Sequence[bytes]) -> str:
    # the tag makes another image of it, so that no test meets the program of another
    config = {**functionimages.image_config(), "Labels": {"tag": tag}}
    registry.image("x/function-tiny", tag, *layers, program=config)
    return f"{registry.host}/x/function-tiny:{tag}"


def layers() -> list[bytes]:
    return [functionimages.program_layer(), functionimages.package_layer()]


def test_a_program_reaches_what_was_granted_on_this_machine_and_nothing_else(
    registry: tuple[OwnRegistry, Pushed], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, pushed = registry
    reference = push(pushed, "network", layers())
    with own_registry() as (other, elsewhere), own_cache(tmp_path / "cache"):
        pack, digest = added(tmp_path, reference, "--network", pushed.host)
        capsys.readouterr()
        assert run(["functions", "--pack", str(pack)]) == 0
        assert f"may reach {pushed.host}" in capsys.readouterr().out
        program = program_function(digest)
        assert program is not None
        own.requests.clear()

        (fetched,) = says(program, "fetch", place=pushed.host)
        refused = f"'HTTP/1.1 403 {elsewhere.host} is not granted to this function'"

        assert fetched.startswith("'HTTP/1.1 200 Connected HTTP/1.1 404")
        assert [path for path, _ in own.requests] == ["/v2/"]
        assert says(program, "fetch", place=elsewhere.host) == [refused]
        alias = f"localhost:{pushed.host.partition(':')[2]}"
        assert says(program, "fetch", place=alias) == [
            f"'HTTP/1.1 403 {alias} is not granted to this function'"
        ]
        assert not other.requests
        direct = says(program, "connect", port=int(pushed.host.partition(":")[2]))
        assert direct == ["ConnectionRefusedError", "OSError"], "past the proxy there is nothing"


def test_a_grant_ends_with_the_next_add_and_no_pack_can_make_one(
    registry: tuple[OwnRegistry, Pushed], tmp_path: Path
) -> None:
    pushed = registry[1]
    reference = push(pushed, "ended", layers())
    with own_cache(tmp_path / "cache"):
        _, digest = added(tmp_path, reference, "--network", f"{pushed.host}")
        first = stored_program(digest)
        assert first is not None
        assert list(first.start.network) == [pushed.host]

        added(tmp_path, reference)

        program = program_function(digest)
        assert program is not None
        assert says(program, "fetch", place=pushed.host) == ["ConnectionRefusedError"]


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("ghcr.io", "ghcr.io:443"),
        ("GHCR.io:8443", "ghcr.io:8443"),
        ("", ""),
        ("https://ghcr.io", ""),
        ("ghcr.io:", ""),
        ("ghcr.io:0", ""),
        ("ghcr.io:99999", ""),
        ("*.io", ""),
        ("a b", ""),
        ("[::1]:443", ""),
    ],
)
def test_a_grant_names_one_host(text: str, host: str) -> None:
    if host:
        assert granted_host(text) == host
        return
    with pytest.raises(InvalidInputError, match="is no host"):
        granted_host(text)


def composed(tiny: Station, *secrets: Manifest, entry: Manifest = SIGN_IN) -> Composed:
    asked_for: list[Selector] = []

    def lookup(selector: Selector) -> list[Manifest]:
        asked_for.append(selector)
        return [*secrets]

    world = World({NAME: tiny}, lookup=lookup, remote={NAME})
    found = compose(XR, steps_of({"pipeline": [entry]}), world)
    assert asked_for[0] == Selector("v1", "Secret", name="cloud", namespace="functions")
    return found


def test_a_program_gets_the_secrets_that_its_step_names(tiny: Station) -> None:
    found = composed(tiny, SECRET)

    assert [e.message for e in found.events] == [
        "Pipeline step \"sign in\": account: ['token', 'user']"
    ]
    assert found.resources["account"].manifest["data"] == {"token": TOKEN, "user": "eve"}


def test_orders_get_credentials_and_plans_show_none_of_them(
    registry: tuple[OwnRegistry, Pushed], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kit = tmp_path / "kit.yaml"
    xrd, composition = yaml.safe_load_all(KIT)
    composition["spec"]["pipeline"].insert(1, {**SIGN_IN, "step": "sign-in"})
    kit.write_text(yaml.safe_dump_all([xrd, composition]))
    with own_cache(tmp_path / "cache"):
        pack, _ = added(tmp_path, push(registry[1], "account", layers()))
        at = ("--pack", str(pack))
        assert run(["kit", "import", str(kit), "--name", "queue", *at]) == 0, capsys.readouterr()
        with (pack / "templates/queue/kit.yaml").open("a") as file:
            file.write("  composes:\n    - {apiVersion: v1, kind: ConfigMap}\n")
        assert run(["kit", "generate", "queue", *at]) == 0
        request = EmbeddedRunRequest(tmp_path / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
        with running(request, on_step=lambda *_: None) as started:
            platform = ("--platform", str(started.embedded.state.folder / "platform.yaml"))
            order = ("order", "queue", "name=first", "team=ae86", "depth=4")
            assert run([*order, "--plan", *platform]) in (0, 10)
            assert "the Secret functions/cloud is not there" in capsys.readouterr().out
            cluster = started.platform.cluster
            home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "functions"}}
            for manifest in (home, SECRET):
                cluster.apply(manifest, owner="test")

            assert run([*order, *platform]) == 0, capsys.readouterr().err

            made = cluster.list(Kind("", "v1", "ConfigMap")).items
            assert [m["data"]["token"] for m in made if "token" in (m.get("data") or {})] == [TOKEN]
            assert run(["plan", "queue-first", "depth=5", *platform]) == 10
            told = capsys.readouterr()
            assert "in the end  Ready" in told.out
            assert TOKEN not in told.out + told.err


def test_a_secret_that_is_not_there_is_named(tiny: Station) -> None:
    assert composed(tiny).error == (
        'cannot run Composition pipeline step "sign in": cannot run Function "function-tiny": it'
        ' needs the credential "account", and the Secret functions/cloud is not there'
    )


def test_a_function_of_this_process_gets_no_credentials() -> None:
    seen: list[object] = []

    def station(request: object) -> object:
        seen.append(getattr(request, "credentials", None))
        raise RuntimeError

    world = World({NAME: station}, lookup=lambda _: [SECRET])  # type: ignore[dict-item]
    compose(XR, steps_of({"pipeline": [SIGN_IN]}), world)

    assert seen == [{}]


def test_layers_compressed_with_zstd_become_a_program(
    registry: tuple[OwnRegistry, Pushed], tmp_path: Path
) -> None:
    packed = [backports.compress(layer) for layer in layers()]
    reference = push(registry[1], "zstd", packed)
    with own_cache(tmp_path / "cache"):
        _, digest = added(tmp_path, reference)
        program = program_function(digest)
        assert program is not None
        assert program(asked("compose")).desired.resources


def _long_window() -> bytes:
    """Compress so that to unpack it takes 1 GiB of memory."""
    options = {
        backports.CompressionParameter.window_log: 30,
        backports.CompressionParameter.enable_long_distance_matching: 1,
        backports.CompressionParameter.content_size_flag: 0,
    }
    packer = backports.ZstdCompressor(options=options)
    data: bytes = packer.compress(os.urandom(1 << 16)) + packer.flush()
    return data


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (lambda: backports.compress(layers()[1])[:-9], "Compressed file ended|unexpected end"),
        (lambda: b"\x28\xb5\x2f\xfd" + b"garbage" * 9, "Zstandard"),
        (_long_window, "too much memory"),
    ],
    ids=["cut off", "garbage", "a window of a gigabyte"],
)
def test_a_broken_zstd_layer_is_refused_whole(layer: object, told: str, tmp_path: Path) -> None:
    assert callable(layer)
    start = program_start({"Entrypoint": ["/x"]})
    with own_cache(tmp_path), pytest.raises(RefusedError, match=told):
        add_program(DIGEST, start, [io.BytesIO(layer())])
    with own_cache(tmp_path):
        assert stored_program(DIGEST) is None
