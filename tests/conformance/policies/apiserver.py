"""An API server behind a kubeconfig, spoken to in plain HTTP: the embedded one and a real one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
import yaml

from ground.objects.kube_objects import Kind

_DEADLINE_S, _TIMEOUT_S, _PAUSE_S = 60.0, 60.0, 0.05
_CONFLICT = 409
_PLURALS = {
    "Namespace": "namespaces",
    "ConfigMap": "configmaps",
    "CustomResourceDefinition": "customresourcedefinitions",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "Application": "applications",
    "ClusterRoleBinding": "clusterrolebindings",
}

Object = dict[str, Any]


class ApiServer:
    """Writes objects and hands the raw answers out."""

    def __init__(self, kubeconfig: Path) -> None:
        read = yaml.safe_load(kubeconfig.read_text())
        cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
        self._url = cluster["server"].rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {user['token']}"
        self._session.verify = cluster.get("certificate-authority", True)
        self.plurals = dict(_PLURALS)

    def close(self) -> None:
        self._session.close()

    def path(self, manifest: Object, name: str = "") -> str:
        """Return where a manifest's collection, or one object of it, is served."""
        kind = Kind.of(manifest)
        root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        namespace = manifest["metadata"].get("namespace")
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{where}/{self.plurals[kind.kind]}" + (f"/{name}" if name else "")

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        dry_run: bool = False,
        account: str = "",
    ) -> requests.Response:
        """Send a request, in the name of an account that may do everything if one is named."""
        query = "?dryRun=All" if dry_run else ""
        headers = {"Impersonate-User": account, "Impersonate-Group": "system:masters"}
        return self._session.request(
            method,
            self._url + path + query,
            json=body,
            headers=headers if account else {},
            timeout=_TIMEOUT_S,
        )

    def create(
        self, manifest: Object, *, dry_run: bool = False, account: str = ""
    ) -> requests.Response:
        return self.call("POST", self.path(manifest), manifest, dry_run=dry_run, account=account)

    def put(
        self,
        manifest: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        account: str = "",
    ) -> requests.Response:
        path = self.path(manifest, manifest["metadata"]["name"])
        path += f"/{subresource}" if subresource else ""
        return self.call("PUT", path, manifest, dry_run=dry_run, account=account)

    def change(
        self,
        manifest: Object,
        change: Callable[[Object], Any],
        *,
        dry_run: bool = False,
        account: str = "",
    ) -> requests.Response:
        """Change the live object, as often as another writer comes first: a real Argo CD does."""
        path = self.path(manifest, manifest["metadata"]["name"])
        while True:
            live = self.call("GET", path).json()
            change(live)
            answer = self.put(live, dry_run=dry_run, account=account)
            if answer.status_code != _CONFLICT:
                return answer

    def delete(
        self, manifest: Object, *, dry_run: bool = False, account: str = ""
    ) -> requests.Response:
        path = self.path(manifest, manifest["metadata"]["name"])
        return self.call("DELETE", path, dry_run=dry_run, account=account)

    def must(self, manifest: Object) -> Object:
        """Create it, or what is there already stays."""
        answer = self.create(manifest)
        assert answer.status_code in {201, 409}, answer.text
        found: Object = answer.json()
        return found

    def define(self, definition: Object) -> None:
        """Define a kind, and wait until it is served."""
        names = definition["spec"]["names"]
        self.plurals[names["kind"]] = names["plural"]
        self.must(definition)
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{names['plural']}"
        eventually(lambda: self.call("GET", path).ok, f"{path} is served")


def eventually(probe: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + _DEADLINE_S
    while not probe():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(_PAUSE_S)
