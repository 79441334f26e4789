"""
The CRDs of Crossplane itself, as far as the embedded platform needs them.

Structural where a mistake should be refused (scope, names, pipeline), open elsewhere. Rules in CEL
stand in them and hold wherever the API server evaluates CEL. Kinds that would pretend something
(Configuration, Operation) are left out; Provider is there so that a pack can ask for a twin
(``providers``); a real one never runs here.

Installed by the platform before the embedded Crossplane starts; a real Crossplane brings its own.
"""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import CLUSTER_USAGE, CRD, USAGE, Kind, Manifest
from kubeschema.xrd import spec_schema

Schema = dict[str, Any]

OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_SELF_IS_OLD_SELF = {"rule": "self == oldSelf", "message": "Value is immutable"}


def crossplane_crds() -> list[Manifest]:
    """
    Return the CRDs of XRDs, Compositions, revisions, EnvironmentConfigs, Usages, packages.

    And of what packages run as, which nobody reads here.
    """
    return [
        _definitions(),
        _compositions(),
        _composition_revisions(),
        _environment_configs(),
        _usages(USAGE, "usages", "Namespaced"),
        _usages(CLUSTER_USAGE, "clusterusages", "Cluster"),
        _package("Function", "functions"),
        _package("Provider", "providers"),
        _runtime_configs(),
    ]


def _object(required: list[str] | None = None, /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _list(items: Schema, **keywords: Any) -> Schema:
    return {"type": "array", "items": items, **keywords}


def _immutable(schema: Schema) -> Schema:
    rules = [*schema.get("x-kubernetes-validations", ()), _SELF_IS_OLD_SELF]
    return {**schema, "x-kubernetes-validations": rules}


def _enum(*values: str, default: str = "") -> Schema:
    schema: Schema = {"type": "string", "enum": list(values)}
    return {**schema, "default": default} if default else schema


def _name_reference() -> Schema:
    return _object(["name"], name=TEXT)


def _status(**properties: Schema) -> Schema:
    condition = _object(
        ["lastTransitionTime", "reason", "status", "type"],
        lastTransitionTime={"type": "string", "format": "date-time"},
        message=TEXT,
        observedGeneration={"type": "integer", "format": "int64"},
        reason=TEXT,
        status=TEXT,
        type=TEXT,
    )
    conditions = _list(
        condition,
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    return _object(conditions=conditions, **properties)


def _column(name: str, path: str, type_: str = "string") -> Schema:
    return {"name": name, "type": type_, "jsonPath": path}


def _condition_column(name: str, type_: str) -> Schema:
    return _column(name, f".status.conditions[?(@.type=='{type_}')].status")


AGE = _column("AGE", ".metadata.creationTimestamp", "date")


def _version(
    name: str, spec: Schema, *, columns: list[Schema], storage: bool = True, status: Schema
) -> Schema:
    root = _object(["spec"], apiVersion=TEXT, kind=TEXT, metadata={"type": "object"})
    root["properties"] |= {"spec": spec, "status": status}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "additionalPrinterColumns": columns,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": root},
    }


def _crd(
    group: str,
    kind: str,
    plural: str,
    versions: list[Schema],
    *,
    short: list[str],
    scope: str = "Cluster",
) -> Manifest:
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": short,
                "categories": ["crossplane"],
            },
            "versions": versions,
        },
    }


_API = "apiextensions.crossplane.io"


def _environment_configs() -> Manifest:
    properties = {"apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}, "data": OPEN}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [AGE],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return _crd(_API, "EnvironmentConfig", "environmentconfigs", [version], short=["envcfg"])


def _definitions() -> Manifest:
    columns = [
        _condition_column("ESTABLISHED", "Established"),
        _condition_column("OFFERED", "Offered"),
        AGE,
    ]
    type_ref = _object(["apiVersion", "kind"], apiVersion=TEXT, kind=TEXT)
    controllers = _object(compositeResourceType=type_ref, compositeResourceClaimType=type_ref)
    status = _status(controllers=controllers)
    return _crd(
        _API,
        "CompositeResourceDefinition",
        "compositeresourcedefinitions",
        [
            _version("v1", spec_schema("v1"), columns=columns, status=status),
            _version("v2", spec_schema("v2"), columns=columns, status=status, storage=False),
        ],
        short=["xrd", "xrds"],
    )


def _composition_spec(*, immutable: bool) -> Schema:
    keyed = {"x-kubernetes-list-type": "map"}
    selector = _object(
        ["apiVersion", "kind", "requirementName"],
        requirementName=TEXT,
        apiVersion=TEXT,
        kind=TEXT,
        name=TEXT,
        namespace=TEXT,
        matchLabels=LABELS,
    )
    credentials = _object(
        ["name", "source"],
        name=TEXT,
        source=_enum("None", "Secret"),
        secretRef=_object(["name", "namespace"], name=TEXT, namespace=TEXT),
    )
    step = _object(
        ["functionRef", "step"],
        step=TEXT,
        functionRef=_name_reference(),
        input={**OPEN, "x-kubernetes-embedded-resource": True},
        credentials=_list(credentials, **keyed, **{"x-kubernetes-list-map-keys": ["name"]}),
        requirements=_object(
            requiredResources=_list(
                selector, **keyed, **{"x-kubernetes-list-map-keys": ["requirementName"]}
            ),
            requiredSchemas=_list(
                _object(
                    ["apiVersion", "kind", "requirementName"],
                    requirementName=TEXT,
                    apiVersion=TEXT,
                    kind=TEXT,
                )
            ),
        ),
    )
    type_ref = _object(["apiVersion", "kind"], apiVersion=TEXT, kind=TEXT)
    pipeline = _list(
        step, minItems=1, maxItems=99, **keyed, **{"x-kubernetes-list-map-keys": ["step"]}
    )
    spec = _object(
        ["compositeTypeRef"],
        compositeTypeRef=_immutable(type_ref) if immutable else type_ref,
        mode=_enum("Pipeline", default="Pipeline"),
        pipeline=pipeline,
        writeConnectionSecretsToNamespace=TEXT,
    )
    rule = "self.mode == 'Pipeline' && has(self.pipeline)"
    message = "an array of pipeline steps is required in Pipeline mode"
    return {**spec, "x-kubernetes-validations": [{"rule": rule, "message": message}]}


_TYPE_COLUMNS = [
    _column("XR-KIND", ".spec.compositeTypeRef.kind"),
    _column("XR-APIVERSION", ".spec.compositeTypeRef.apiVersion"),
]


def _compositions() -> Manifest:
    version = _version(
        "v1",
        _composition_spec(immutable=True),
        columns=[*_TYPE_COLUMNS, AGE],
        status=_status(),
    )
    return _crd(_API, "Composition", "compositions", [version], short=["comp"])


def _composition_revisions() -> Manifest:
    spec = _composition_spec(immutable=False)
    spec["properties"]["revision"] = {"type": "integer", "format": "int64"}
    spec["required"] = [*spec["required"], "revision"]
    columns = [
        _column("REVISION", ".spec.revision"),
        _condition_column("VALIDPIPELINE", "ValidPipeline"),
        *_TYPE_COLUMNS,
        AGE,
    ]
    version = _version("v1", spec, columns=columns, status=_status())
    return _crd(_API, "CompositionRevision", "compositionrevisions", [version], short=["comprev"])


def _usages(kind: Kind, plural: str, scope: str) -> Manifest:
    reference_rule = {"rule": "has(self.resourceRef) || has(self.resourceSelector)"}
    reference_rule["message"] = "either a resource reference or a resource selector should be set."
    sides = {}
    for side, elsewhere in (("by", {}), ("of", {"namespace": TEXT})):
        selector = _object(matchControllerRef=FLAG, matchLabels=LABELS, **elsewhere)
        reference = _object(["name"], name=TEXT, **elsewhere)
        resource = _object(
            apiVersion=TEXT, kind=TEXT, resourceRef=reference, resourceSelector=selector
        )
        sides[side] = {**resource, "x-kubernetes-validations": [reference_rule]}
    spec = _object(["of"], reason=TEXT, replayDeletion=FLAG, **sides)
    message = 'either "spec.by" or "spec.reason" must be specified.'
    rule = {"rule": "has(self.by) || has(self.reason)", "message": message}
    columns = [
        _column("DETAILS", ".metadata.annotations.crossplane\\.io/usage-details"),
        _condition_column("READY", "Ready"),
        AGE,
    ]
    ruled = {**spec, "x-kubernetes-validations": [rule]}
    version = _version(kind.version, ruled, columns=columns, status=_status())
    return _crd(kind.group, kind.kind, plural, [version], short=[], scope=scope)


def _package(kind: str, plural: str) -> Manifest:
    spec = _object(
        ["package"],
        package=TEXT,
        packagePullPolicy=TEXT,
        packagePullSecrets=_list(_name_reference()),
        revisionActivationPolicy=_enum("Automatic", "Manual", default="Automatic"),
        revisionHistoryLimit={"type": "integer", "format": "int64", "default": 1},
        skipDependencyResolution=FLAG,
        ignoreCrossplaneConstraints=FLAG,
        commonLabels=LABELS,
        runtimeConfigRef=_object(["name"], apiVersion=TEXT, kind=TEXT, name=TEXT),
    )
    columns = [
        _condition_column("INSTALLED", "Installed"),
        _condition_column("HEALTHY", "Healthy"),
        _column("PACKAGE", ".spec.package"),
        AGE,
    ]
    status = _status(currentRevision=TEXT, currentIdentifier=TEXT, resolvedPackage=TEXT)
    version = _version("v1", spec, columns=columns, status=status)
    return _crd("pkg.crossplane.io", kind, plural, [version], short=[])


def _runtime_configs() -> Manifest:
    version = _version("v1beta1", OPEN, columns=[AGE], status=OPEN)
    plural = "deploymentruntimeconfigs"
    return _crd("pkg.crossplane.io", "DeploymentRuntimeConfig", plural, [version], short=[])
