"""``orderkit kit schemas``: CRDs from registries and folders, and what a bad registry cannot do."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import labkit
import ociregistry
import pytest
from ociregistry import OwnRegistry, Pushed, archive, digest

from orderkit.cli.main import run
from orderkit_standins.loopback_certificate import ensure_certificate
from yamlfiles import yaml11

PATH = "acme/provider-cloud"
MODERN, LEGACY = "storage.cloud.m.example.org", "storage.cloud.example.org"
COMPOSED = f"    - {{apiVersion: {MODERN}/v1beta1, kind: Bucket}}\n"
WRITTEN = f"schemas/{MODERN}_buckets.yaml"
META = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-cloud}\n"
PROVIDER = """
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: cloud}
spec: {package: __ORDERKIT_REGISTRY__/acme/provider-cloud:__ORDERKIT_VERSION_PROVIDER_CLOUD__}
"""


def crd(kind: str, group: str, *, note: str = "The place.", plural: str = "", **more: str) -> str:
    plural = plural or f"{kind.lower()}s"
    field = more.get("field", "region")
    return f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.19.0
  name: {plural}.{group}
spec:
  group: {group}
  names:
    kind: {kind}
    plural: {plural}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: {note}
        type: object
        properties:
          spec:
            type: object
            properties:
              forProvider:
                type: object
                properties:
                  {field}: {{type: string, description: {note}}}
                  description: {{type: string, description: Free words.}}
"""


def stream(*crds: str) -> bytes:
    return "---\n".join([META, *crds]).encode()


BOTH = stream(crd("Bucket", MODERN), crd("Bucket", LEGACY), crd("Disk", MODERN))
PACKAGE = archive({"package.yaml": BOTH})
PROGRAM = archive({"usr/bin/provider": os.urandom(2000), "etc/package.yaml": b"not this one"})


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack whose kit composes a Bucket; this user has no credentials."""
    texts = labkit.TEXTS | {"templates/lab/kit.yaml": labkit.KIT + COMPOSED}
    root = tmp_path / "pack"
    for path, data in labkit.generated(texts).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.delenv("ORDERKIT_REGISTRY", raising=False)
    return root


@pytest.fixture
def own() -> Iterator[tuple[OwnRegistry, Pushed]]:
    with ociregistry.own_registry() as registry:
        yield registry


@contextlib.contextmanager
def served(which: str, folder: Path, *, login: bool = False) -> Iterator[Pushed]:
    if which == "own":
        with ociregistry.own_registry() as (registry, pushed):
            registry.login = "basic" if login else ""
            yield pushed
        return
    program = ociregistry.real_registry_program()
    if program is None:
        pytest.skip("no docker-registry on this machine: scripts/test-tools.sh installs it")
    with ociregistry.real_registry(program, folder, login=login) as pushed:
        yield pushed


REGISTRIES = pytest.mark.parametrize("which", ["own", "docker-registry"])


def add(pack: Path, *arguments: str) -> int:
    return run(["kit", "schemas", "add", "--pack", str(pack), *arguments])


def log_in(registry: Pushed, *, password: str = ociregistry.PASSWORD) -> None:
    folder = Path(os.environ["DOCKER_CONFIG"])
    folder.mkdir(exist_ok=True)
    pair = base64.b64encode(f"{ociregistry.USER}:{password}".encode()).decode()
    config = {"auths": {registry.host: {"auth": pair}}}
    (folder / "config.json").write_text(json.dumps(config))


def sources(pack: Path) -> list[dict[str, object]]:
    text = (pack / "schemas/sources.yaml").read_bytes()
    entries: list[dict[str, object]] = yaml11.load(text, name="", schema={})["sources"]
    return entries


def files(pack: Path) -> list[str]:
    return sorted(path.name for path in (pack / "schemas").glob("*"))


@REGISTRIES
def test_the_composed_kinds_of_a_package_become_schemas(
    which: str, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(which, tmp_path) as registry:
        image = registry.image(PATH, "", PROGRAM, PACKAGE, marked=1)
        tag = registry.index(PATH, "v1.0.0", {"unknown": image, "arm64": image, "amd64": image})

        assert add(pack, f"{PATH}@v1.0.0", "--registry", registry.host) == 0

        out = capsys.readouterr().out
        assert out == f"written  {WRITTEN}\n{PATH}@v1.0.0 {tag}\n"
        assert files(pack) == ["sources.yaml", f"{MODERN}_buckets.yaml"]
        text = (pack / WRITTEN).read_text()
        assert text.startswith(f"# Written by 'orderkit kit schemas add' from {PATH}@v1.0.0")
        assert "The place." not in text
        assert "controller-gen" not in text
        manifest = yaml11.load(text, name="", schema={})
        schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for_provider = schema["properties"]["spec"]["properties"]["forProvider"]
        assert for_provider["properties"] == {
            "region": {"type": "string"},
            "description": {"type": "string"},
        }
        content = digest((pack / WRITTEN).read_bytes())
        entry = {"package": PATH, "version": "v1.0.0", "digest": tag}
        assert sources(pack) == [{**entry, "files": {f"{MODERN}_buckets.yaml": content}}]

        before = (pack / "schemas/sources.yaml").stat().st_mtime_ns
        assert add(pack, f"{registry.host}/{PATH}:v1.0.0@{tag}", "--kinds", "Disk") == 0
        assert add(pack, f"{PATH}@v1.0.0", "--registry", registry.host) == 0
        assert f"same     {WRITTEN}\n" in capsys.readouterr().out
        assert (pack / "schemas/sources.yaml").stat().st_mtime_ns >= before


@REGISTRIES
def test_a_registry_that_asks_who_pulls_gets_dockers_credentials(
    which: str, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(which, tmp_path, login=True) as registry:
        registry.image(PATH, "v1.0.0", PACKAGE, marked=0)
        asked = f"{registry.host}/{PATH}@v1.0.0"

        assert add(pack, asked) == 1
        assert f"docker login {registry.host}" in capsys.readouterr().err
        log_in(registry, password="wrong-password")
        assert add(pack, asked) == 1
        assert "wrong-password" not in "".join(capsys.readouterr())
        log_in(registry)
        assert add(pack, asked) == 0
        assert sources(pack)[0]["package"] == f"{registry.host}/{PATH}"


@REGISTRIES
def test_versions_that_are_not_there_are_named(
    which: str, pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(which, tmp_path) as registry:
        registry.image(PATH, "v1.0.0", PACKAGE, marked=0)

        assert add(pack, f"{PATH}@v9", "--registry", registry.host) == 1
        assert f"{registry.host}/{PATH} has no manifests v9" in capsys.readouterr().err
        assert add(pack, f"{PATH}@{digest(b'')}", "--registry", registry.host) == 1
        assert not (pack / "schemas").exists()


@pytest.mark.parametrize("login", ["anonymous", "token"])
def test_a_token_service_is_asked_for_our_repository_only(
    login: str, pack: Path, own: tuple[OwnRegistry, Pushed]
) -> None:
    registry, pushed = own
    pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
    registry.login = login
    log_in(pushed)

    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 0

    asked = [path for path, _ in registry.requests if path.startswith("/token")]
    assert asked == ["/token?service=here&scope=repository%3Aacme%2Fprovider-cloud%3Apull"]


HELPER = """#!/bin/sh
read -r host
test "$1 $host" = "get {host}" || {{ echo credentials not found in native keychain; exit 1; }}
echo '{{"ServerURL": "x", "Username": "{user}", "Secret": "{secret}"}}'
"""


@pytest.mark.parametrize(
    ("login", "user", "secret"),
    [
        ("basic", ociregistry.USER, ociregistry.PASSWORD),
        ("token", "<token>", "identity-of-puller"),
    ],
)
def test_a_credential_helper_is_asked(
    login: str,
    user: str,
    secret: str,
    pack: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = Path(os.environ["DOCKER_CONFIG"])
    folder.mkdir()
    (folder / "config.json").write_text('{"credsStore": "fake"}')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with ociregistry.own_registry() as (registry, pushed):
        helper = folder / "docker-credential-fake"
        helper.write_text(HELPER.format(host=pushed.host, user=user, secret=secret))
        helper.chmod(0o700)
        pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
        registry.login = login

        assert add(pack, f"{pushed.host}/{PATH}@v1.0.0") == 0
        helper.write_text(HELPER.format(host="other", user=user, secret=secret))
        registry.login = "basic"
        assert add(pack, f"{pushed.host}/{PATH}@v1.0.0") == 1


def test_a_private_ca_is_trusted_if_named(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tls").mkdir()
    certificate = ensure_certificate(tmp_path / "tls")
    with ociregistry.own_registry() as (registry, pushed):
        pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
        with ociregistry.own_registry(registry, certificate) as (_, safe):
            where = [f"{PATH}@v1.0.0", "--registry", safe.url]

            assert add(pack, *where) == 1
            assert "--ca-file names the certificate of a private CA" in capsys.readouterr().err
            assert add(pack, *where, "--ca-file", str(tmp_path / "missing")) == 2
            assert add(pack, *where, "--ca-file", str(certificate.authority)) == 0


@pytest.mark.parametrize("mark", ["label", "none"])
def test_packages_without_annotations_are_read(
    mark: str, pack: Path, own: tuple[OwnRegistry, Pushed]
) -> None:
    _, pushed = own
    early = archive({"package.yaml": stream(crd("Bucket", MODERN, field="early"))}, plain=True)
    labels = mark == "label"
    pushed.image(PATH, "v1.0.0", early, PACKAGE, PROGRAM, marked=1 if labels else -1, labels=labels)

    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 0
    assert "region" in (pack / WRITTEN).read_text()


def test_blobs_in_another_place_get_no_credentials(
    pack: Path, own: tuple[OwnRegistry, Pushed]
) -> None:
    registry, pushed = own
    with ociregistry.own_registry() as (store, store_pushed):
        pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
        store.blobs.update(registry.blobs)
        registry.redirect, registry.login = store_pushed.url, "basic"
        log_in(pushed)

        assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 0
        assert {authorization for _, authorization in store.requests} == {""}


def test_a_pinned_provider_needs_its_name_only(
    pack: Path, own: tuple[OwnRegistry, Pushed], capsys: pytest.CaptureFixture[str]
) -> None:
    _, pushed = own
    tag = pushed.image(PATH, "v1.2.0", PACKAGE, marked=0)
    (pack / "gitops/providers").mkdir(parents=True)
    (pack / "gitops/providers/cloud.yaml").write_text(PROVIDER)
    broken = PROVIDER.replace("__ORDERKIT_REGISTRY__/acme/provider-cloud:", "No Package:")
    (pack / "gitops/providers/broken.yaml").write_text(broken)  # `kit check` reports it
    text = (pack / "pack.yaml").read_text()
    pins = text + f"  versions: {{provider-cloud: v1.2.0@{tag}}}\n"
    assert "versions:" not in text
    (pack / "pack.yaml").write_text(pins)

    assert add(pack, "provider-cloud", "--registry", pushed.url) == 0
    assert sources(pack)[0]["version"] == "v1.2.0"
    assert add(pack, "provider-clod", "--registry", pushed.url) == 1
    assert "did you mean 'provider-cloud'?" in capsys.readouterr().err

    (pack / "pack.yaml").write_text(pins.replace("v1.2.0", "v1.3.0"))
    assert run(["kit", "check", "--pack", str(pack)]) in (0, 1)
    told = capsys.readouterr().out
    assert f"schema-version: {PATH} is pinned at v1.3.0, its schemas are of v1.2.0" in told
    # the pin's digest counts: the tag has to mean that package
    pushed.image(PATH, "v1.3.0", archive({"package.yaml": stream(crd("Bucket", MODERN))}), marked=0)
    assert add(pack, "provider-cloud", "--registry", pushed.url) == 0
    assert sources(pack)[0]["digest"] == tag


def test_a_tag_that_was_moved_is_refused(
    pack: Path, own: tuple[OwnRegistry, Pushed], capsys: pytest.CaptureFixture[str]
) -> None:
    _, pushed = own
    first = pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 0
    other = archive({"package.yaml": stream(crd("Bucket", MODERN, field="zone"))})
    moved = pushed.image(PATH, "v1.0.0", other, marked=0)
    capsys.readouterr()

    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 4
    told = capsys.readouterr().err
    assert f"{PATH}@v1.0.0 is {moved} now, and was {first} when" in told
    assert "region" in (pack / WRITTEN).read_text()
    assert add(pack, f"{PATH}@v1.0.0@{moved}", "--registry", pushed.url) == 0
    assert "zone" in (pack / WRITTEN).read_text()


def test_a_newer_version_renews_what_was_copied(
    pack: Path, own: tuple[OwnRegistry, Pushed]
) -> None:
    _, pushed = own
    pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
    newer = stream(crd("Bucket", MODERN, field="zone"), crd("Disk", MODERN, field="zone"))
    pushed.image(PATH, "v2.0.0", archive({"package.yaml": newer}), marked=0)
    where = ["--registry", pushed.url]

    assert add(pack, f"{PATH}@v1.0.0", "--kinds", f"Disk,Bucket.{MODERN}", *where) == 0
    assert add(pack, f"{PATH}@v2.0.0", *where) == 0

    assert [entry["version"] for entry in sources(pack)] == ["v2.0.0"]
    texts = [(pack / "schemas" / name).read_text() for name in files(pack)[1:]]
    assert all("zone" in text and "region" not in text for text in texts)


def test_a_folder_of_crds_is_a_source(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crds"
    folder.mkdir()
    (folder / "all.yaml").write_text(crd("Bucket", MODERN) + "---\n" + crd("Disk", MODERN))
    as_json = yaml11.load(crd("Queue", MODERN), name="", schema={})
    (folder / "queue.json").write_text(json.dumps(as_json))

    assert add(pack, "--from", str(folder), "--descriptions") == 0
    assert "The place." in (pack / WRITTEN).read_text()
    assert sources(pack)[0]["folder"] == "crds"
    assert add(pack, "--from", str(folder), "--kinds", "Queue") == 0
    assert f"{MODERN}_queues.yaml" in files(pack)
    capsys.readouterr()
    assert add(pack, "--from", str(folder), "--kinds", "Quene") == 1
    assert "did you mean 'Queue'?" in capsys.readouterr().err
    (folder / "old.yaml").write_text(crd("Queue", "old.example.org"))
    assert add(pack, "--from", str(folder), "--kinds", "Queue") == 2
    assert f"is several kinds: Queue.old.example.org and Queue.{MODERN}" in capsys.readouterr().err


def test_a_file_written_by_hand_stays(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/bucket.yaml").write_text(crd("Bucket", MODERN))
    (pack / "schemas").mkdir()
    (pack / WRITTEN).write_text(crd("Bucket", MODERN, field="mine"))

    assert add(pack, "--from", str(tmp_path / "crds")) == 0
    assert f"kept     {WRITTEN}: it was written or edited by hand" in capsys.readouterr().out
    assert add(pack, "--from", str(tmp_path / "crds"), "--kinds", f"Bucket.{MODERN}") == 4
    assert "mine" in (pack / WRITTEN).read_text()


def test_check_reports_edits_and_kinds_without_a_schema(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = ["kit", "schemas", "check", "--pack", str(pack)]
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/bucket.yaml").write_text(crd("Bucket", MODERN))

    assert run(check) == 10
    expected = f"no schema: Bucket.{MODERN} (v1beta1), composed by kit lab\n"
    assert capsys.readouterr().out == expected
    assert add(pack, "--from", str(tmp_path / "crds")) == 0
    assert run(check) == 0
    with (pack / WRITTEN).open("a") as file:
        file.write("# edited\n")
    capsys.readouterr()
    assert run(check) == 10
    assert f"{WRITTEN}: has the digest sha256:" in capsys.readouterr().out
    (pack / WRITTEN).unlink()
    assert run([*check, "--json"]) == 10
    report = json.loads(capsys.readouterr().out)
    assert report["changed"] == {WRITTEN: "is missing; it was copied from crds"}


def bomb() -> bytes:
    """Return a small archive with a file of three hundred megabytes."""
    member = tarfile.TarInfo("padding")
    member.size = 300_000_000
    return gzip.compress(member.tobuf()) + gzip.compress(bytes(1_000_000)) * 301


def extended_headers() -> bytes:
    """Return an archive of three thousand extended headers that describe each other."""
    member = tarfile.TarInfo("x")
    member.type = tarfile.XHDTYPE
    return gzip.compress(member.tobuf() * 3_000)


ESCAPE = "../../../../evil"
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
)


@pytest.mark.parametrize(
    ("layer", "outcome"),
    [
        pytest.param(bomb(), (1, "larger than 256000000 bytes unpacked"), id="gzip bomb"),
        pytest.param(
            archive({f"{number}": b"" for number in range(100_000)}),
            (1, "a layer of the package has more than 10000 members"),
            id="members",
        ),
        pytest.param(
            extended_headers(), (1, "a layer of the package cannot be read"), id="recursion"
        ),
        pytest.param(
            b"\x1f\x8b nothing", (1, "a layer of the package cannot be read"), id="broken"
        ),
        pytest.param(PACKAGE[:-60], (1, "a layer of the package cannot be read"), id="cut off"),
        pytest.param(
            archive({ESCAPE: BOTH, "/package.yaml": BOTH}), (1, "has no package.yaml"), id="paths"
        ),
        pytest.param(
            archive({"package.yaml": stream(crd("Bucket", MODERN, plural=ESCAPE))}),
            (2, "is not a plural"),
            id="plural",
        ),
        pytest.param(
            archive({"package.yaml": stream(crd("Bucket", MODERN) + ALIASES)}),
            (2, "aliases"),
            id="YAML bomb",
        ),
        pytest.param(
            archive({"package.yaml": stream(crd("Bucket", MODERN, note="x" * 9_000_000))}),
            (2, "larger than 8000000 bytes"),
            id="huge",
        ),
        pytest.param(archive({"package.yaml": b"a: 1"}), (1, "it has no CRDs at all"), id="empty"),
        pytest.param(
            archive({"package.yaml": stream(crd("Disk", MODERN))}),
            (1, f"none of the kinds that the kits compose: Bucket.{MODERN}"),
            id="others",
        ),
        pytest.param(
            archive({"package.yaml": stream("kind: CustomResourceDefinition\n\x1b[31mred: [")}),
            (2, "cannot be read"),
            id="escape",
        ),
    ],
)
def test_a_hostile_package_writes_nothing(
    layer: bytes,
    outcome: tuple[int, str],
    pack: Path,
    own: tuple[OwnRegistry, Pushed],
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, pushed = own
    code, message = outcome
    pushed.image(PATH, "v1.0.0", layer, marked=0)

    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == code

    told = capsys.readouterr()
    assert message in told.err
    assert "\x1b" not in told.err
    assert len(told.err) < 2_000
    assert not (pack / "schemas").exists()


@pytest.mark.parametrize("part", ["/manifests/v1", "/manifests/sha256", "/blobs/"])
def test_changed_content_is_refused(
    part: str,
    pack: Path,
    own: tuple[OwnRegistry, Pushed],
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry, pushed = own
    image = pushed.image(PATH, "", PACKAGE, marked=0)
    pushed.index(PATH, "v1.0.0", {"amd64": image})
    registry.spoil = lambda path, data: data + b" " if part in path else data

    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 4
    assert "has the digest sha256:" in capsys.readouterr().err
    assert not (pack / "schemas").exists()


def test_addresses_that_a_registry_names_are_https_or_this_machine(
    pack: Path, own: tuple[OwnRegistry, Pushed], capsys: pytest.CaptureFixture[str]
) -> None:
    registry, pushed = own
    pushed.image(PATH, "v1.0.0", PACKAGE, marked=0)
    log_in(pushed)
    registry.login, registry.realm = "token", "http://tokens.example.org/token"

    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 4
    assert "names a token service that is not https: tokens.example.org" in capsys.readouterr().err
    registry.login, registry.redirect = "", "file:///etc"
    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 4
    registry.redirect = pushed.url
    assert add(pack, f"{PATH}@v1.0.0", "--registry", pushed.url) == 1
    assert "redirects more than 5 times" in capsys.readouterr().err
    assert add(pack, f"{PATH}@v1.0.0", "--registry", "http://registry.example.org") == 4
    assert "a registry over plain HTTP" in capsys.readouterr().err


@pytest.mark.parametrize(
    "provider",
    ["../etc@v1", "a/b", "acme/b@v1 v2", "Acme/B@v1", "acme/b@sha256:12", "u:p@host/b@v1", "@v1"],
)
def test_what_is_not_a_reference_is_refused(
    provider: str, pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(pack, provider, "--registry", "127.0.0.1:1") == 2
    assert "provider" in capsys.readouterr().err
