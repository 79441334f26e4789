"""
CompositeResourceDefinitions: what they define, the CRDs Crossplane makes, and what it drops.

`crd_for` and `claim_crd_for` return the same CRDs as Crossplane 2.3. `cuts` returns what Crossplane
drops silently, `problems` what the API server would refuse, in its words. Covers both API versions,
v1 and v2, and the three scopes.

Not covered: positions in a file and hints on a whole XRD (``validate.xrd_check``), connection
secrets (only their keys are read), conversion between versions.
"""

from kubeschema.xrd.definition import (
    GROUP,
    XRD_KIND,
    BrokenXrdError,
    api_version_of,
    claim_kind,
    connection_secret_keys,
    default_composition,
    is_legacy,
    machinery_path,
    referenceable_version,
    scope_of,
    update_policy_of,
    versions_of,
    xr_kind,
)
from kubeschema.xrd.derived_crds import (
    NAME_MAX,
    claim_crd_for,
    claim_problem,
    crd_for,
    problems,
    schema_steps,
)
from kubeschema.xrd.dropped_keywords import Cut, cuts, dropped
from kubeschema.xrd.typed_schema import spec_schema, typed

__all__ = [
    "GROUP",
    "NAME_MAX",
    "XRD_KIND",
    "BrokenXrdError",
    "Cut",
    "api_version_of",
    "claim_crd_for",
    "claim_kind",
    "claim_problem",
    "connection_secret_keys",
    "crd_for",
    "cuts",
    "default_composition",
    "dropped",
    "is_legacy",
    "machinery_path",
    "problems",
    "referenceable_version",
    "schema_steps",
    "scope_of",
    "spec_schema",
    "typed",
    "update_policy_of",
    "versions_of",
    "xr_kind",
]
