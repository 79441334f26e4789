"""The folder for ``idpbuilder create``, judged by idpbuilder's own rules, for both routings."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import idpbuilderrules
import pytest
import yaml

from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.main import run
from orderkit.core.platform import idpbuilder
from orderkit.flows.template.actions.publish_repository import repository_of

EXAMPLES = Path(__file__).parents[2] / "bootstrap" / "idpbuilder"
BY_PATH = "https://cnoe.localtest.me:8443/gitea"
BY_NAME = "https://gitea.cnoe.localtest.me:8443"
LEDGER = "platform/ledger.git"


@pytest.fixture(
    scope="module", params=[("platform.yaml", BY_PATH), ("platform-subdomains.yaml", BY_NAME)]
)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A folder as the command writes it, and the Gitea's address."""
    example, gitea = request.param
    out = tmp_path_factory.mktemp("idpbuilder") / "out"
    arguments = ["--platform", str(EXAMPLES / example), "--out", str(out)]
    assert run(["platform", "render", "--target", "idpbuilder", *arguments]) == 0
    return out, gitea


def test_it_is_one_package_whose_pack_goes_where_platform_yaml_says(
    written: tuple[Path, str],
) -> None:
    folder, gitea = written

    (root,) = idpbuilderrules.packages(folder / "packages", gitea=gitea)

    url = f"{gitea}/{idpbuilder.pack_repository()}.git"
    assert root.application["metadata"]["name"] == "root"
    assert root.application["spec"]["source"]["repoURL"] == url
    assert root.pushed[url] / root.application["spec"]["source"]["path"] == (
        folder / "packages" / "pack" / "gitops" / "apps"
    )


def test_layers_name_the_addresses_themselves_because_nobody_rewrites_them(
    written: tuple[Path, str],
) -> None:
    folder, gitea = written
    (root,) = idpbuilderrules.packages(folder / "packages", gitea=gitea)
    apps = folder / "packages" / "pack" / "gitops" / "apps"
    known = {*root.pushed, f"{gitea}/{LEDGER}"}

    layers = [yaml.safe_load(path.read_text()) for path in sorted(apps.glob("*.yaml"))]

    assert layers
    assert {layer["spec"]["source"]["repoURL"] for layer in layers} <= known
    assert "argocd-settings" not in {layer["metadata"]["name"] for layer in layers}
    ours = [each for each in layers if each["spec"]["source"]["repoURL"] in root.pushed]
    for layer in ours:
        assert (folder / "packages" / "pack" / layer["spec"]["source"]["path"]).is_dir()


def test_argo_cds_settings_replace_what_idpbuilder_ships_and_lose_nothing(
    written: tuple[Path, str],
) -> None:
    ships = {("ConfigMap", "argocd-cm")}

    (settings,) = idpbuilderrules.custom_objects(written[0] / "argocd-cm.yaml", ships=ships)

    data = settings["data"]
    assert set(idpbuilder.SHIPPED) <= set(data)
    assert "ProviderConfigUsage" in data["resource.exclusions"]
    assert data["timeout.reconciliation"] == "60s"
    assert "resource.customizations.health.argoproj.io_Application" in data
    assert settings["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd"


def test_the_readme_names_the_flags_of_these_addresses(written: tuple[Path, str]) -> None:
    folder, gitea = written

    text = (folder / "README.md").read_text()

    assert ("--use-path-routing" in text) is (gitea == BY_PATH)
    assert "-p packages -c argocd:argocd-cm.yaml" in text


def test_cnoes_backstage_gets_steps_with_its_own_actions(written: tuple[Path, str]) -> None:
    """With these inputs: host and path of Gitea in repoUrl, a named cluster for the Job."""
    folder, gitea = written
    kit = folder / "packages" / "pack" / "templates" / "garage"
    template = yaml.safe_load((kit / "template.yaml").read_text())

    steps = {step["id"]: step for step in template["spec"]["steps"]}
    host = template["spec"]["parameters"][0]["properties"]["forge_host"]["default"]
    wanted = f"{host}?owner=ae86&repo=garage-ae86"

    assert [step["action"] for step in steps.values()] == [
        "fetch:template",
        "publish:gitea",
        "cnoe:kubernetes:apply",
        "catalog:register",
    ]
    assert host == gitea.removeprefix("https://")
    assert steps["order"]["input"]["clusterName"] == "local"
    with GiteaForge(gitea, token="never-sent") as forge:  # nothing is asked of it
        assert repository_of(wanted, forge) == RepoId("ae86", "garage-ae86")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://gitea.example.org", "no port"),
        ("https://cnoe.localtest.me:8443", "neither path nor subdomain"),
        ("https://cnoe.localtest.me:8443/git", "another path"),
    ],
)
def test_an_address_that_is_not_idpbuilders_is_refused(url: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match="is not an address of idpbuilder's Gitea"):
        idpbuilder.addresses(url)
    assert reason


def test_a_pack_repository_that_idpbuilder_would_not_push_to_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is not the repository") as error:
        idpbuilder.cluster_name(RepoId("platform", "pack"))
    assert "giteaAdmin/idpbuilder-localdev-root-pack" in error.value.hint
    assert error.value.field == "spec.packRepository"


def test_settings_that_idpbuilder_would_take_for_a_template_are_refused() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {a: '{{ b }}'}\n"
    files = {PurePosixPath("gitops/argocd/argocd-cm.yaml"): text.encode()}

    with pytest.raises(InvalidInputError, match="a Go template"):
        idpbuilder.settings(files)


def release(version: str, *more: str) -> str:
    """Return manifests as those of an Argo CD release: a part of each kind that is changed."""
    image = f"registry.example.org/argoproj/argocd:{version}"
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - args: [/usr/local/bin/{name}]
        image: {image}
        name: {name}
"""
    names = ("argocd-server", "argocd-repo-server", "argocd-dex-server")
    return "---".join((
        *(deployment.format(name=name, image=image) for name in names),
        ("\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: applicationsets.argoproj.io}\n"
        "spec: {description: 'such as {{ .path }} in a template'}\n"),
        *(
            f"\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
            for name in ("argocd-cm", "argocd-rbac-cm", "argocd-tls-certs-cm", "argocd-ssh-hosts")
        ),
        *more,
    ))  # fmt: skip


def raised(tmp_path: Path, text: str, example: str = "platform.yaml") -> int:
    (tmp_path / "install.yaml").write_text(text)
    arguments = ["--platform", str(EXAMPLES / example), "--out", str(tmp_path / "out")]
    arguments += ["--argocd-release", str(tmp_path / "install.yaml")]
    return run(["platform", "render", "--target", "idpbuilder", *arguments])


@pytest.mark.parametrize(
    ("example", "arguments"),
    [("platform.yaml", ["--insecure", "--basehref", "/argocd"]), ("platform-subdomains.yaml", [])],
)
def test_the_package_raises_idpbuilders_argo_cd(
    tmp_path: Path, example: str, arguments: list[str]
) -> None:
    """Its own certificates and accounts stay, and it keeps Dex switched off."""
    assert raised(tmp_path, release("v3.6.3"), example) == 0

    found = {
        (each["kind"], each["metadata"]["name"]): each
        for each in idpbuilderrules.custom_objects(tmp_path / "out" / "argocd-cm.yaml", ships=None)
    }

    assert set(found) == {
        ("ConfigMap", "argocd-cm"),
        ("ConfigMap", "argocd-ssh-hosts"),
        ("CustomResourceDefinition", "applicationsets.argoproj.io"),
        *(("Deployment", f"argocd-{name}") for name in ("server", "repo-server", "dex-server")),
    }
    assert "ProviderConfigUsage" in found["ConfigMap", "argocd-cm"]["data"]["resource.exclusions"]
    definition = found["CustomResourceDefinition", "applicationsets.argoproj.io"]
    assert definition["spec"]["description"] == "such as {{ .path }} in a template"
    assert definition["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-options": "ServerSideApply=true"
    }
    server = found["Deployment", "argocd-server"]["spec"]["template"]["spec"]["containers"][0]
    assert server["args"] == ["/usr/local/bin/argocd-server", *arguments]
    assert server["image"].endswith(":v3.6.3")
    assert found["Deployment", "argocd-dex-server"]["spec"]["replicas"] == 0
    assert found["Deployment", "argocd-repo-server"]["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("reason", "text", "says"),
    [
        ("its own", release("v3.1.7"), "Argo CD v3.1.7 is older than 3.4.10"),
        ("a line that does not exist yet", release("v3.9.0"), "newer than 3.6.3"),
        ("no tag", release("latest"), "the version of Argo CD is not known"),
        ("other manifests", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "not known"),
        (
            "of another namespace",
            release(
                "v3.6.3", "\napiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: y}\n"
            ),
            "'Secret x' has a namespace",
        ),
    ],
)
def test_manifests_of_no_supported_argo_cd_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reason: str, text: str, says: str
) -> None:
    assert raised(tmp_path, text) == 2, reason

    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_release_is_for_idpbuilder_only(tmp_path: Path) -> None:
    (tmp_path / "install.yaml").write_text(release("v3.6.3"))

    arguments = ["--argocd-release", str(tmp_path / "install.yaml"), "--out", str(tmp_path / "x")]
    assert run(["platform", "render", *arguments]) == 2


def test_a_portals_part_admits_templates_of_the_pack_and_nothing_about_people(
    tmp_path: Path,
) -> None:
    arguments = ["--platform", str(EXAMPLES / "platform.yaml"), "--out", str(tmp_path / "out")]

    assert run(["platform", "render", "--target", "backstage", *arguments]) == 0

    catalog = yaml.safe_load((tmp_path / "out" / "app-config.orderkit.yaml").read_text())["catalog"]
    assert catalog["rules"] == [{"allow": ["Component", "API", "Resource", "System"]}]
    rules = [location["rules"] for location in catalog["locations"]]
    assert rules == [[{"allow": ["Template"]}]] * len(rules)
    targets = [location["target"] for location in catalog["locations"]]
    assert all(target.startswith(f"{BY_PATH}/") for target in targets)
    assert any(target.endswith("/templates/garage/template.yaml") for target in targets)
