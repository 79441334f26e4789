"""The edits that bootstrapping makes in idpbuilder's repositories: in place, once, and no more."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.kit.pack import Files
from orderkit.core.platform import idpbuilder
from orderkit.flows.install.bootstrapping import BootstrapRequest, StepVerdict
from orderkit.flows.install.bootstrapping.idpbuilder_steps import (
    TemplatesStep,
    with_settings,
    with_targets,
)
from orderkit.flows.install.bootstrapping.steps import BootstrapContext
from orderkit.flows.install.bootstrapping.team_steps import template_urls
from orderkit.flows.install.pack_rendering import values_of
from orderkit.ports.forge import FileChange, Operation

from .conftest import Bare

INSTALLATION = """apiVersion: v1
kind: ServiceAccount
metadata:
  name: argocd-server   # stays
---
apiVersion: v1
data:
  timeout.reconciliation: 60s
  resource.exclusions: |
    - kinds: [ProviderConfigUsage]
      apiGroups: ["*"]
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/part-of: argocd
  name: argocd-cm
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cmd-params-cm
"""
CATALOG = """apiVersion: backstage.io/v1alpha1
kind: Location
metadata:
  name: examples
spec:
  targets:
    - ./basic/template.yaml   # theirs
---
apiVersion: backstage.io/v1alpha1
kind: Location
metadata:
  name: organization
spec:
  targets:
    - ./organization/guests.yaml
"""
LUA = "local health = {}\nif obj.status ~= nil then\n  health.status = 1\nend\nreturn health\n"


def test_settings_are_written_into_the_one_document_and_the_rest_stays() -> None:
    key = "resource.customizations.health.argoproj.io_Application"
    wanted = {"timeout.reconciliation": "60s", key: LUA}

    found = with_settings(INSTALLATION.encode(), wanted)

    assert found is not None
    before, after = list(yaml.safe_load_all(INSTALLATION)), list(yaml.safe_load_all(found))
    assert (after[0], after[2]) == (before[0], before[2])
    assert after[1]["data"] == {**before[1]["data"], key: LUA}
    assert "name: argocd-server   # stays" in found.decode()
    assert with_settings(found, wanted) == found


def test_a_file_without_argocd_cm_is_left_alone() -> None:
    assert with_settings(b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: other}\n", {}) is None


def test_targets_are_added_once_to_the_first_location() -> None:
    urls = ["https://git.example.org/a.yaml", "https://git.example.org/b.yaml"]

    found = with_targets(CATALOG.encode(), urls)

    first, second = yaml.safe_load_all(found)
    assert first["spec"]["targets"] == ["./basic/template.yaml", *urls]
    assert second == list(yaml.safe_load_all(CATALOG))[1]
    assert "# theirs" in found.decode()
    assert with_targets(found, urls) == found


def test_a_file_without_locations_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="has no Location with targets"):
        with_targets(b"kind: Component\napiVersion: v1\n", ["x"])


def files() -> Files:
    return read_folder(reference_pack())


def test_templates_become_targets_in_the_repository_that_cnoes_backstage_reads(site: Bare) -> None:
    platform = site.platform
    repo = idpbuilder.repository("backstage-templates", "entities")
    assert repo == RepoId("giteaAdmin", "idpbuilder-localdev-backstage-templates-entities")
    platform.forge.ensure_org(repo.owner)
    platform.forge.ensure_repo(repo, description="as idpbuilder pushes it")
    path = PurePosixPath("catalog-info.yaml")
    write = Operation("theirs", "user:default/cnoe", "theirs")
    platform.forge.write(repo, [FileChange(path, CATALOG.encode(), None)], write)
    values = values_of(site.settings, "0" * 40)
    request = BootstrapRequest(files(), values, "user:default/test")
    step = TemplatesStep(BootstrapContext(platform, request))

    assert step.look().verdict is StepVerdict.CHANGE
    assert step.ensure(lambda _: None).verdict is StepVerdict.CHANGE

    found = platform.forge.read(repo, path, "main")
    assert found is not None
    first = next(iter(yaml.safe_load_all(found.text)))
    assert first["spec"]["targets"][1:] == list(template_urls(step.site))
    assert step.look().verdict is StepVerdict.DONE
    assert step.ensure(lambda _: None).verdict is StepVerdict.DONE
    assert len(platform.forge.commits(repo)) == 2
