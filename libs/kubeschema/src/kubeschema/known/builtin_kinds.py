"""
Kubernetes' own kinds, as plans judge them without a cluster: fields, types, required fields.

Written from the API reference of Kubernetes 1.36. Strict where compositions often contain errors:
the fields of the object, of its spec, of pods and containers. Open where kinds are deep and seldom
written by hand (affinity, security contexts, volume sources). The API server's own OpenAPI document
is more exact; a plan also uses it if there is a cluster.
"""

from __future__ import annotations

import functools
from typing import Any

from ground.objects.kube_objects import CRD, Kind
from ground.objects.scopes import is_namespaced
from kubeschema.extensions import INT_OR_STRING, PRESERVE
from kubeschema.known.known_kinds import KnownKind, Layer
from kubeschema.validate import Validator

__all__ = ["METADATA", "built_in"]

Schema = dict[str, Any]

_T: Schema = {"type": "string"}
_B: Schema = {"type": "boolean"}
_I: Schema = {"type": "integer"}
_ANY: Schema = {PRESERVE: True}
_OPEN: Schema = {"type": "object", PRESERVE: True}
_PORT: Schema = {INT_OR_STRING: True}
_MAP: Schema = {"type": "object", "additionalProperties": _T}
_BYTES: Schema = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
_QUANTITIES: Schema = {"type": "object", "additionalProperties": _ANY}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(*required: str, **properties: Schema) -> Schema:
    """Return a schema that allows no other fields. A name that Python reserves ends in ``_``."""
    fields = {name.rstrip("_"): schema for name, schema in properties.items()}
    object_schema: Schema = {"type": "object", "properties": fields}
    return {**object_schema, "required": list(required)} if required else object_schema


def _enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _texts(names: str) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), _T)


def _flags(names: str) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), _B)


def _numbers(names: str) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), _I)


def _opens(names: str) -> dict[str, Schema]:
    return dict.fromkeys(names.split(), _OPEN)


_TEXTS = _list(_T)
_SELECTOR = _object(
    matchLabels=_MAP,
    matchExpressions=_list(
        _object(
            "key", "operator", key=_T, values=_TEXTS,
            operator=_enum("In", "NotIn", "Exists", "DoesNotExist"),
        )
    ),
)  # fmt: skip
_LOCAL = _object(name=_T)
_KEY = _object("key", key=_T, name=_T, optional=_B)
_ENV = _object(
    "name", name=_T, value=_T,
    valueFrom=_object(
        configMapKeyRef=_KEY, secretKeyRef=_KEY,
        fieldRef=_object("fieldPath", apiVersion=_T, fieldPath=_T),
        resourceFieldRef=_object("resource", containerName=_T, resource=_T, divisor=_ANY),
        fileKeyRef=_OPEN,
    ),
)  # fmt: skip
_PROBE = _object(
    **_opens("exec tcpSocket grpc"),
    httpGet=_object("port", port=_PORT, httpHeaders=_list(_OPEN), **_texts("host path scheme")),
    **_numbers(
        "failureThreshold initialDelaySeconds periodSeconds successThreshold "
        "terminationGracePeriodSeconds timeoutSeconds"
    ),
)
_CONTAINER = _object(
    "name",
    **_texts("name image terminationMessagePath workingDir restartPolicy"),
    args=_TEXTS,
    command=_TEXTS,
    env=_list(_ENV),
    envFrom=_list(
        _object(
            prefix=_T,
            configMapRef=_object(name=_T, optional=_B),
            secretRef=_object(name=_T, optional=_B),
        )
    ),
    imagePullPolicy=_enum("Always", "IfNotPresent", "Never"),
    terminationMessagePolicy=_enum("File", "FallbackToLogsOnError"),
    livenessProbe=_PROBE,
    readinessProbe=_PROBE,
    startupProbe=_PROBE,
    ports=_list(
        _object("containerPort", protocol=_enum("TCP", "UDP", "SCTP"),
                **_numbers("containerPort hostPort"), **_texts("hostIP name"))
    ),
    resources=_object(limits=_QUANTITIES, requests=_QUANTITIES, claims=_list(_OPEN)),
    **_flags("stdin stdinOnce tty"),
    **_opens("lifecycle securityContext"),
    **dict.fromkeys(("resizePolicy", "restartPolicyRules", "volumeDevices"), _list(_OPEN)),
    volumeMounts=_list(
        _object(
            "name", "mountPath", readOnly=_B,
            **_texts("name mountPath mountPropagation recursiveReadOnly subPath subPathExpr"),
        )
    ),
)  # fmt: skip
_VOLUME = _object(
    "name", name=_T,
    **_opens(
        "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir "
        "ephemeral fc flexVolume flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi "
        "nfs persistentVolumeClaim photonPersistentDisk portworxVolume projected quobyte rbd "
        "scaleIO secret storageos vsphereVolume"
    ),
)  # fmt: skip
_POD_SPEC = _object(
    "containers",
    containers=_list(_CONTAINER),
    initContainers=_list(_CONTAINER),
    volumes=_list(_VOLUME),
    nodeSelector=_MAP,
    overhead=_QUANTITIES,
    imagePullSecrets=_list(_LOCAL),
    restartPolicy=_enum("Always", "OnFailure", "Never"),
    **_texts(
        "dnsPolicy hostname hostnameOverride nodeName preemptionPolicy priorityClassName "
        "runtimeClassName schedulerName serviceAccount serviceAccountName subdomain"
    ),
    **_flags(
        "automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID hostUsers "
        "setHostnameAsFQDN shareProcessNamespace"
    ),
    **_numbers("activeDeadlineSeconds priority terminationGracePeriodSeconds"),
    **_opens("affinity dnsConfig os resources schedulingGroup securityContext"),
    **dict.fromkeys(
        ("ephemeralContainers", "hostAliases", "readinessGates", "resourceClaims",
         "schedulingGates", "tolerations", "topologySpreadConstraints"), _list(_OPEN),
    ),
)  # fmt: skip
_POD = _object(metadata=_OPEN, spec=_POD_SPEC)
_CLAIM_SPEC = _object(
    accessModes=_list(_enum("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")),
    resources=_object(limits=_QUANTITIES, requests=_QUANTITIES),
    selector=_SELECTOR,
    **_opens("dataSource dataSourceRef"),
    **_texts("storageClassName volumeAttributesClassName volumeMode volumeName"),
)
_CLAIM = _object(apiVersion=_T, kind=_T, metadata=_OPEN, spec=_CLAIM_SPEC, status=_OPEN)
_ROLLING = _object(type=_T, rollingUpdate=_OPEN)
_JOB_SPEC = _object(
    "template",
    template=_POD,
    selector=_SELECTOR,
    **_numbers(
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completions maxFailedIndexes "
        "parallelism ttlSecondsAfterFinished"
    ),
    **_texts("completionMode managedBy podReplacementPolicy"),
    **_flags("manualSelector suspend"),
    **_opens("podFailurePolicy successPolicy"),
)
_RULES = _list(
    _object(
        "verbs", apiGroups=_TEXTS, nonResourceURLs=_TEXTS, resourceNames=_TEXTS, resources=_TEXTS,
        verbs=_TEXTS,
    )
)  # fmt: skip
_BINDING = _object(
    "roleRef",
    roleRef=_object("kind", "name", **_texts("apiGroup kind name")),
    subjects=_list(_object("kind", "name", **_texts("apiGroup kind name namespace"))),
)
_PEER = _object(
    podSelector=_SELECTOR,
    namespaceSelector=_SELECTOR,
    ipBlock=_object("cidr", cidr=_T, except_=_TEXTS),
)
_NETWORK_PORTS = _list(_object(protocol=_T, port=_PORT, endPort=_I))
_BACKEND = _object(
    resource=_OPEN, service=_object("name", name=_T, port=_object(name=_T, number=_I))
)
_SERVICE_SPEC = _object(
    type=_enum("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
    selector=_MAP,
    ports=_list(
        _object(
            "port", port=_I, nodePort=_I, targetPort=_PORT, appProtocol=_T, name=_T,
            protocol=_enum("TCP", "UDP", "SCTP"),
        )
    ),
    **_texts(
        "clusterIP externalName externalTrafficPolicy internalTrafficPolicy ipFamilyPolicy "
        "loadBalancerClass loadBalancerIP sessionAffinity trafficDistribution"
    ),
    **_flags("allocateLoadBalancerNodePorts publishNotReadyAddresses"),
    healthCheckNodePort=_I,
    sessionAffinityConfig=_OPEN,
    **dict.fromkeys(
        ("clusterIPs", "externalIPs", "ipFamilies", "loadBalancerSourceRanges"), _TEXTS
    ),
)  # fmt: skip
_KINDS: dict[tuple[str, str], Schema] = {
    ("v1", "Namespace"): _object(spec=_object(finalizers=_TEXTS)),
    ("v1", "ConfigMap"): _object(data=_MAP, binaryData=_BYTES, immutable=_B),
    ("v1", "Secret"): _object(data=_BYTES, stringData=_MAP, immutable=_B, type=_T),
    ("v1", "ServiceAccount"): _object(
        automountServiceAccountToken=_B, imagePullSecrets=_list(_LOCAL), secrets=_list(_OPEN)
    ),
    ("v1", "Service"): _object(spec=_SERVICE_SPEC),
    ("v1", "PersistentVolumeClaim"): _object("spec", spec=_CLAIM_SPEC),
    ("v1", "Pod"): _object("spec", spec=_POD_SPEC),
    ("v1", "ResourceQuota"): _object(
        spec=_object(hard=_QUANTITIES, scopes=_TEXTS, scopeSelector=_OPEN)
    ),
    ("v1", "LimitRange"): _object(
        "spec",
        spec=_object(
            "limits",
            limits=_list(
                _object("type", type=_T, **dict.fromkeys(
                    ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio"),
                    _QUANTITIES,
                ))
            ),
        ),
    ),
    ("apps/v1", "Deployment"): _object(
        "spec",
        spec=_object(
            "selector", "template", selector=_SELECTOR, template=_POD, paused=_B,
            strategy=_object(type=_enum("Recreate", "RollingUpdate"), rollingUpdate=_OPEN),
            **_numbers("minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit"),
        ),
    ),
    ("apps/v1", "StatefulSet"): _object(
        "spec",
        spec=_object(
            "selector", "template", selector=_SELECTOR, template=_POD, updateStrategy=_ROLLING,
            volumeClaimTemplates=_list(_CLAIM),
            **_opens("ordinals persistentVolumeClaimRetentionPolicy"),
            **_texts("podManagementPolicy serviceName"),
            **_numbers("minReadySeconds replicas revisionHistoryLimit"),
        ),
    ),
    ("apps/v1", "DaemonSet"): _object(
        "spec",
        spec=_object(
            "selector", "template", selector=_SELECTOR, template=_POD, updateStrategy=_ROLLING,
            **_numbers("minReadySeconds revisionHistoryLimit"),
        ),
    ),
    ("batch/v1", "Job"): _object("spec", spec=_JOB_SPEC),
    ("batch/v1", "CronJob"): _object(
        "spec",
        spec=_object(
            "schedule", "jobTemplate", jobTemplate=_object(metadata=_OPEN, spec=_JOB_SPEC),
            suspend=_B, concurrencyPolicy=_enum("Allow", "Forbid", "Replace"),
            **_texts("schedule timeZone"),
            **_numbers("failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit"),
        ),
    ),
    ("networking.k8s.io/v1", "NetworkPolicy"): _object(
        spec=_object(
            podSelector=_SELECTOR,
            policyTypes=_list(_enum("Ingress", "Egress")),
            ingress=_list(_object(from_=_list(_PEER), ports=_NETWORK_PORTS)),
            egress=_list(_object(to=_list(_PEER), ports=_NETWORK_PORTS)),
        )
    ),
    ("networking.k8s.io/v1", "Ingress"): _object(
        spec=_object(
            defaultBackend=_BACKEND,
            ingressClassName=_T,
            tls=_list(_object(hosts=_TEXTS, secretName=_T)),
            rules=_list(
                _object(
                    host=_T,
                    http=_object(
                        "paths",
                        paths=_list(
                            _object(
                                "pathType", "backend", path=_T, backend=_BACKEND,
                                pathType=_enum("Exact", "Prefix", "ImplementationSpecific"),
                            )
                        ),
                    ),
                )
            ),
        )
    ),
    ("policy/v1", "PodDisruptionBudget"): _object(
        spec=_object(
            selector=_SELECTOR, minAvailable=_PORT, maxUnavailable=_PORT,
            unhealthyPodEvictionPolicy=_T,
        )
    ),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _object(
        "spec",
        spec=_object(
            "scaleTargetRef", "maxReplicas", **_numbers("minReplicas maxReplicas"),
            scaleTargetRef=_object("kind", "name", **_texts("apiVersion kind name")),
            metrics=_list(_OPEN), behavior=_OPEN,
        )
    ),
    ("rbac.authorization.k8s.io/v1", "Role"): _object(rules=_RULES),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): _object(rules=_RULES, aggregationRule=_OPEN),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): _BINDING,
}  # fmt: skip

_PLURALS = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}
_OWNER = {
    "apiVersion": _T, "kind": _T, "name": _T, "uid": _T, "controller": _B,
    "blockOwnerDeletion": _B,
}  # fmt: skip
METADATA: Schema = _object(
    **_texts("name generateName namespace uid resourceVersion selfLink"),
    **_numbers("generation deletionGracePeriodSeconds"),
    creationTimestamp={"type": "string", "nullable": True},
    deletionTimestamp={"type": "string", "nullable": True},
    labels=_MAP,
    annotations=_MAP,
    finalizers=_TEXTS,
    managedFields=_list(_OPEN),
    ownerReferences=_list(_object("apiVersion", "kind", "name", "uid", **_OWNER)),
)
"""``metadata`` of every object."""


@functools.cache
def built_in() -> Layer:
    """Return Kubernetes' own kinds, each in the one version that compositions should use."""
    kinds = {}
    for (api_version, name), schema in _KINDS.items():
        kind = Kind.parse(api_version, name)
        version = {
            "name": kind.version, "served": True, "schema": {"openAPIV3Schema": schema},
        }  # fmt: skip
        spec = {"group": kind.group, "names": {"kind": name}, "versions": [version]}
        kinds[kind.group, name] = KnownKind(
            Validator({"kind": CRD.kind, "spec": spec}),
            is_namespaced(kind),
            _PLURALS.get(name, f"{name.lower()}s"),
            partial=True,
        )
    return kinds
