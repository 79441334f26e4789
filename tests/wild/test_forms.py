"""Forms of imported XRDs: what people are asked for, and the order that follows from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import yaml
from commands import Command, in_process
from wildforms import TEXT, group, imported_pack, wild_xrd

from ground.names import RepoId
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.cli.main import run
from orderkit.core.kit.pack import definition_path
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running
from yamlfiles.manifests import parse_manifests

OWN = {"name", "team", "forge_host", "pack_commit"}


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_pack(tmp_path_factory.mktemp("forms"))


@pytest.fixture(scope="module")
def forms_platform(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("forms-state") / "state"
    request = EmbeddedRunRequest(state, pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def orderkit(forms_platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(forms_platform.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture
def spec_of(forms_platform: Running) -> Callable[[str], Any]:
    """Read an order's ``spec.parameters`` from Git."""

    def read(order: str) -> Any:
        forge = forms_platform.platform.forge
        repo = RepoId("ae86", order)
        head = forge.head(repo)
        assert head is not None
        path = next(p for p in forge.tree(repo, head) if p.is_relative_to("manifests"))
        file = forge.read(repo, PurePosixPath(path), head)
        assert file is not None
        (xr,) = parse_manifests(path.name, file.data)
        return xr["spec"]["parameters"]

    return read


def pages(pack: Path, kit: str) -> dict[str, dict[str, Any]]:
    entity = yaml.safe_load((pack / "templates" / kit / "template.yaml").read_text())
    return {
        page["title"]: {n: s for n, s in page["properties"].items() if n not in OWN}
        for page in entity["spec"]["parameters"]
    }


def test_an_imported_form_asks_for_the_product_and_not_for_its_infrastructure(pack: Path) -> None:
    form = pages(pack, "postgres")

    assert {title: [*fields] for title, fields in form.items()} == {
        "Order": ["region", "diskSizeGb", "adminPasswordSecretRef", "network"],
        "Advanced settings": [
            "deletionPolicy",
            "providerConfigName",
            "managementPolicies",
            "writeConnectionSecretToRef",
            "more_settings",
        ],
    }
    order = form["Order"]
    assert [order[name]["title"] for name in ("diskSizeGb", "network")] == [
        "Disk size GB",
        "Network",
    ]
    network = order["network"]["properties"]
    assert [schema["title"] for schema in network.values()] == ["VPC ID", "Subnet IDs"]
    assert "9223372036854775807" not in (pack / "docs/kits/postgres.md").read_text()


def test_a_form_of_258_values_asks_for_forty_of_them(pack: Path) -> None:
    form = pages(pack, "fleet")

    assert [*form["Order"]][:2] == ["region", "vmCount"]
    assert form["Order"]["vmCount"]["title"] == "VM count"
    assert len(form) <= 6
    assert [*form["Advanced settings"]] == ["more_settings"]
    assert "`tls`" in form["Advanced settings"]["more_settings"]["description"]


def test_the_imported_kits_pass_their_check(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["kit", "check", "--pack", str(pack)])

    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "parameters.adminPassword looks like a secret: no form asks for it" in shown


def test_an_xrd_that_needs_a_secret_is_not_imported(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mail.yaml"
    schema = group("login", login=group("user", "password", user=TEXT, password=TEXT))
    file.write_text(yaml.safe_dump(wild_xrd("Mail", schema)))

    arguments = ["kit", "import", str(file), "--pack", str(pack)]
    code = run(arguments)

    shown = capsys.readouterr().err
    assert code == 2
    assert "--not-secret login.password" in shown
    assert "login.password" in shown
    assert "would be a secret in plain text: orders are files in Git" in shown
    assert "passwordSecretRef" in shown
    assert not (pack / "templates/mail").exists()

    misspelled = run([*arguments, "--not-secret", "login.pasword"])

    assert misspelled == 2
    shown = capsys.readouterr().err
    assert "--not-secret: 'login.pasword' is not a field of the XRD" in shown
    assert "did you mean 'login.password'?" in shown

    other = shutil.copytree(pack, tmp_path / "other")
    arguments[-1] = str(other)
    assert run([*arguments, "--not-secret", "login.password"]) == 0
    assert "login.password:\n      secret: false" in (other / "templates/mail/kit.yaml").read_text()
    assert run(["kit", "check", "--pack", str(other), "mail"]) == 0


def test_an_order_from_the_form_is_delivered_and_changed(
    orderkit: Command, spec_of: Callable[[str], Any]
) -> None:
    text = "tls:\n  setting00: strict\n  advancedMode: {enabled: true, copies: 3}\n"
    values = ("name=one", "team=ae86", "region=eu", "vmCount=3", f"more_settings={text}")

    placed = orderkit("order", "fleet", *values)

    assert placed.code == 0, placed.err
    tls = {"setting00": "strict", "advancedMode": {"enabled": True, "copies": 3}}
    assert spec_of("fleet-one") == {
        "region": "eu",
        "vmCount": 3,
        "osImage": "debian-13",
        "tls": tls,
    }
    again = orderkit("order", "fleet", *values)
    assert (again.code, again.out.count("fleet-one") > 0) == (0, True), again.err

    changed = orderkit("change", "fleet-one", "parameters.tls.setting00=lax")
    assert changed.code == 0, changed.err
    assert spec_of("fleet-one")["tls"] == {**tls, "setting00": "lax"}


def test_a_secret_is_not_written_by_a_change(orderkit: Command) -> None:
    placed = orderkit("order", "postgres", "name=s", "team=ae86", "region=eu", "diskSizeGb=10")
    assert placed.code == 0, placed.err

    changed = orderkit("change", "postgres-s", "parameters.adminPassword=hunter2-hunter2")

    assert changed.code == 4
    assert "parameters.adminPassword looks like a secret" in changed.err
    assert "secret: false" in changed.err
    assert "hunter2" not in changed.err + changed.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tls: {setting00: 3}", "tls.setting00: 3 is refused"),
        ("tls: {seting00: x}", "tls.seting00: 'x' is refused: unknown field"),
        ("region: us", "region: 'us' cannot be set in more_settings"),
        ("metadata: {labels: {}}", "metadata: {'labels': {}} cannot be set in more_settings"),
        ("tls: [", "is not usable YAML: line"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_text_is_named_and_nothing_is_written(
    text: str, says: str, orderkit: Command, forms_platform: Running
) -> None:
    refused = orderkit(
        "order", "fleet", "name=two", "team=ae86", "region=eu", "vmCount=3", f"more_settings={text}"
    )

    assert refused.code == 2
    assert says in " ".join(refused.err.split())
    assert forms_platform.platform.forge.head(RepoId("ae86", "fleet-two")) is None


@pytest.fixture
def ask(forms_platform: Running) -> Callable[..., requests.Response]:
    """Send a request to the service as the portal's proxy does."""
    service = forms_platform.settings.service

    def send(method: str, path: str, body: Any = None) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                f"{service.url}{path}",
                json=body,
                headers={SECRET_HEADER: token(service)},
                allow_redirects=False,
                timeout=60,
            )

    return send


def test_the_service_reads_the_text_for_a_portals_own_steps(
    ask: Callable[..., requests.Response],
) -> None:
    def read(text: str, kit: str = "fleet") -> tuple[int, Any]:
        answer = ask("POST", f"/v1/kits/{kit}/settings", {"text": text})
        return answer.status_code, answer.json()

    tls = {"parameters": {"tls": {"setting01": "x"}}}
    assert read("tls: {setting01: x}") == (200, {"spec": tls})
    code, refusal = read("zone: b")
    assert code == 400
    assert "zone: 'b' cannot be set in more_settings" in refusal["error"]["message"]
    assert read("a: b", "ghost")[0] == 404


def test_a_form_of_a_change_shows_and_changes_the_text(
    ask: Callable[..., requests.Response], orderkit: Command, spec_of: Callable[[str], Any]
) -> None:
    text = "quota:\n  setting02: old\n  setting03: gone\n"
    values = ("name=form", "team=ae86", "region=eu", "vmCount=1", f"more_settings={text}")
    placed = orderkit("order", "fleet", *values)
    assert placed.code == 0, placed.err
    link = ask("GET", "/v1/orders/fleet-form/changes/change/form").headers["Location"]
    shown = json.loads(parse_qs(urlsplit(link).query)["formData"][0])
    assert yaml.safe_load(shown["more_settings"]) == yaml.safe_load(text)
    base = shown.pop("base_commit")
    values_shown = {name: value for name, value in shown.items() if name != "order_id"}

    answer = ask(
        "POST",
        "/v1/orders/fleet-form/changes",
        {
            "values": {**values_shown, "more_settings": "quota: {setting02: new}"},
            "base": base,
            "whole": True,
        },
    )

    assert answer.status_code == 201, answer.text
    assert spec_of("fleet-form") == {
        "region": "eu",
        "vmCount": 1,
        "osImage": "debian-13",
        "quota": {"setting02": "new"},
    }


def test_doctor_says_that_a_published_kit_needs_a_secret_in_plain_text(
    orderkit: Command, forms_platform: Running
) -> None:
    """As a pack may that an earlier release published."""
    platform, path = forms_platform.platform, definition_path("postgres")

    def replace(old: str, new: str) -> None:
        file = platform.forge.read(platform.pack_repo, path, "main")
        assert file is not None
        assert old in file.text
        change = FileChange(path, file.text.replace(old, new).encode(), file.sha)
        platform.forge.write(
            platform.pack_repo, [change], Operation(f"edit-{len(new)}", "user:default/x", "x")
        )

    def doctor() -> dict[str, str]:
        findings = orderkit("doctor", "--json").json["findings"]
        return next(finding for finding in findings if finding["what"] == "pack")

    replace("- diskSizeGb\n", "- adminPassword\n")
    told = doctor()
    replace("- adminPassword\n", "- diskSizeGb\n")

    assert told["verdict"] == "warn"
    assert "kit 'postgres' would be refused when the pack is published again" in told["detail"]
    assert "parameters.adminPassword" in told["detail"]
    assert "adminPasswordSecretRef" in told["advice"]
    assert doctor()["verdict"] == "ok"
