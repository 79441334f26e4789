"""
Judge ValidatingAdmissionPolicies, and a write by them, as the Kubernetes API server does.

`judge` takes policies, bindings and a `Review`. It returns denials and warnings in the server's
words and order, and follows the server for constraints, conditions, variables, parameters, message
expressions, failure policies and actions. An expression that cannot be evaluated exactly
(``authorizer``, functions the CEL library lacks) counts as failed: ``failurePolicy`` decides, and
the message says so.

Not covered: audit annotations, what an expression might cost at most, mutating policies, and
conversion between versions (a rule for one version sees the object as it was sent).

`policy_faults` says why the server would refuse a policy itself: expressions that are not valid.
They are compiled, never run. Not covered there: names, limits, the cost of expressions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ground.objects.kube_objects import NAMESPACE, Kind, Manifest, dig, labels_of, metadata
from kubeschema.cel.evaluation import Activation, EvaluationOutcome
from kubeschema.cel.expressions import Expression, bound

__all__ = ["BINDING", "POLICY", "Operation", "Policy", "Review", "judge", "policy_faults"]


def policy_faults(policy: Manifest) -> Iterator[tuple[str, str]]:
    """Yield field and message for each expression that the server would refuse."""
    spec = policy.get("spec") or {}
    variables: dict[str, str] = {}
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        at = f"spec.matchConditions[{index}].expression"
        yield from _faults(at, Expression(condition["expression"]), "bool")
    for index, variable in enumerate(spec.get("variables") or ()):
        at = f"spec.variables[{index}].expression"
        faults = list(_faults(at, Expression(variable["expression"], variables), ""))
        yield from faults
        variables[variable["name"]] = "dyn(null)" if faults else variable["expression"]
    for index, validation in enumerate(spec.get("validations") or ()):
        at = f"spec.validations[{index}]"
        expression = Expression(validation["expression"], variables)
        yield from _faults(f"{at}.expression", expression, "bool")
        if message_expression := validation.get("messageExpression"):
            yield from _faults(
                f"{at}.messageExpression", Expression(message_expression, variables), "string"
            )


def _faults(at: str, expression: Expression, expected_type: str) -> Iterator[tuple[str, str]]:
    source_text = json.dumps(expression.source, ensure_ascii=False)
    fault, result = expression.judged()
    if fault:
        yield at, f"Invalid value: {source_text}: compilation failed: {fault}"
    elif expected_type and result and result != expected_type:
        yield at, f"Invalid value: {source_text}: must evaluate to {expected_type} but got {result}"


GROUP = "admissionregistration.k8s.io"
POLICY = Kind(GROUP, "v1", "ValidatingAdmissionPolicy")
BINDING = Kind(GROUP, "v1", "ValidatingAdmissionPolicyBinding")
_MESSAGE_MAX = 5 * 1024  # Kubernetes' MaxEvaluatedMessageExpressionSizeBytes

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Look = Callable[[Kind, str | None], Sequence[Manifest]]
"""Return the objects of a kind, in one namespace or (None) everywhere."""


@dataclass(frozen=True, slots=True)
class Review:
    """The write to judge."""

    operation: Operation
    kind: Kind
    plural: str
    name: str
    new: Manifest | None
    old: Manifest | None
    namespace: str = ""
    subresource: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    namespace_object: Manifest | None = None

    def request(self) -> dict[str, Any]:
        """Return the ``request`` variable of CEL expressions."""
        kind = {"group": self.kind.group, "version": self.kind.version, "kind": self.kind.kind}
        resource = {
            "group": self.kind.group,
            "version": self.kind.version,
            "resource": self.plural,
        }
        texts = {  # the server leaves out what is empty
            "subResource": self.subresource,
            "requestSubResource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        return {
            "operation": self.operation,
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            **{key: text for key, text in texts.items() if text},
            "dryRun": self.dry_run,
            "userInfo": {"username": self.user, "groups": list(self.groups)},
        }


@dataclass(frozen=True, slots=True)
class Denial:
    """One validation that failed."""

    policy: str
    binding: str
    message: str
    reason: str = "Invalid"

    @property
    def sentence(self) -> str:
        """The sentence in the server's answer."""
        return (
            f"{POLICY.kind} '{self.policy}' with binding '{self.binding}' denied request: "
            f"{self.message}"
        )


@dataclass(slots=True)
class Ruling:
    """The verdict of all policies. The write is admitted if there are no denials."""

    denials: list[Denial] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Expressions that were not evaluated and whose policy ignores failures."""


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Failure:
    message: str
    reason: str = "Invalid"
    skipped: bool = False
    """Not a denial: the policy ignores failures."""


class Policy:
    """One policy. Its expressions are compiled on first use."""

    def __init__(self, manifest: Manifest) -> None:
        spec = manifest.get("spec") or {}
        self.name = str(metadata(manifest).get("name", ""))
        self.constraints: Mapping[str, Any] = spec.get("matchConstraints") or {}
        kind = spec.get("paramKind")
        self.param_kind = Kind.parse(kind["apiVersion"], kind["kind"]) if kind else None
        self._ignores = spec.get("failurePolicy") == "Ignore"
        variables = {v["name"]: v["expression"] for v in spec.get("variables") or ()}
        self._conditions = [Expression(c["expression"]) for c in spec.get("matchConditions") or ()]
        self._validations = [
            _Validation(
                Expression(v["expression"], variables),
                str(v.get("message") or "").strip(),
                Expression(message, variables) if (message := v.get("messageExpression")) else None,
                str(v.get("reason") or "Invalid"),
            )
            for v in spec.get("validations") or ()
        ]

    def failed(self, why: str) -> _Failure:
        """Return an evaluation failure, counted as the policy's ``failurePolicy`` says."""
        return _Failure(why, skipped=self._ignores)

    def is_out_of_scope(self, review: Review) -> bool:
        """Say whether a condition that needs no parameters excludes the write."""
        try:
            data = bound(object=review.new, oldObject=review.old, request=review.request())
        except OverflowError:
            return False
        return any(
            condition.evaluate(data).value is False
            for condition in self._conditions
            if "params" not in condition.source and "namespaceObject" not in condition.source
        )

    def failures(self, review: Review, params: Manifest | None) -> Iterator[_Failure]:
        """Yield the validations that fail, evaluated with one parameter object or none."""
        try:
            data = bound(
                object=review.new,
                oldObject=review.old,
                request=review.request(),
                params=params,
                namespaceObject=review.namespace_object,
            )
        except OverflowError as error:
            yield self.failed(f"was not evaluated: {error}")
            return
        is_wanted = self._match_conditions(data)
        if isinstance(is_wanted, _Failure):
            yield is_wanted
        elif is_wanted:
            for validation in self._validations:
                yield from self._judge(validation, data)

    def _match_conditions(self, data: Activation) -> bool | _Failure:
        """
        Evaluate the match conditions.

        One false condition skips the policy, even if others fail.
        """
        failure = None
        for condition in self._conditions:
            outcome = condition.evaluate(data)
            if outcome.value is False:
                return False
            if outcome.value is not True and failure is None:
                failure = self.failed(_unjudged(condition, outcome))
        return True if failure is None else failure

    def _judge(self, validation: _Validation, data: Activation) -> Iterator[_Failure]:
        outcome = validation.expression.evaluate(data)
        if outcome.value is True:
            return
        if outcome.value is False:
            yield _Failure(_message(validation, data), validation.reason)
        else:
            yield self.failed(_unjudged(validation.expression, outcome))


def _unjudged(expression: Expression, outcome: EvaluationOutcome) -> str:
    if outcome.gap:
        return f"expression '{expression.source}' was not evaluated: {outcome.gap}"
    error = outcome.error or f"no boolean: {outcome.value!r}"
    return f"expression '{expression.source}' resulted in error: {error}"


def _message(validation: _Validation, data: Activation) -> str:
    expression = validation.message_expression
    text = expression.evaluate(data).value if expression is not None else None
    if isinstance(text, str) and _is_usable(text.strip()):
        return text.strip()
    return validation.message or f"failed expression: {validation.expression.source}"


def _is_usable(message: str) -> bool:
    return bool(message) and "\n" not in message and len(message.encode()) <= _MESSAGE_MAX


def judge(
    policies: Mapping[str, Policy], bindings: Sequence[Manifest], review: Review, look: Look
) -> Ruling:
    """
    Return the verdict of policies and bindings on a write.

    Policies run in order of their names; the API server's order is undefined. Admission
    configuration itself is never judged.
    """
    ruling = Ruling()
    if review.kind.group == GROUP:
        return ruling
    for binding in bindings:
        spec = binding.get("spec") or {}
        policy = policies.get(str(spec.get("policyName", "")))
        if policy is None or not matches(policy.constraints, review):
            continue
        if spec.get("matchResources") and not matches(
            spec["matchResources"], review, of_binding=True
        ):
            continue
        for failure in _failures_of_binding(policy, spec, review, look):
            _note(ruling, failure, policy, binding)
    return ruling


def _failures_of_binding(
    policy: Policy, spec: Mapping[str, Any], review: Review, look: Look
) -> Iterator[_Failure]:
    reference = spec.get("paramRef")
    if policy.param_kind is None or not reference:
        yield from policy.failures(review, None)
        return
    params_objects = _params(policy.param_kind, reference, review, look)
    if not params_objects and reference.get("parameterNotFoundAction") != "Allow":
        why = "no params found for policy binding with `Deny` parameterNotFoundAction"
        yield policy.failed(f"failed to configure binding: {why}")
    if len(params_objects) > 1 and policy.is_out_of_scope(review):
        return
    for params in params_objects:
        yield from policy.failures(review, params)


def _params(kind: Kind, reference: Mapping[str, Any], review: Review, look: Look) -> list[Manifest]:
    namespace = reference.get("namespace") or review.namespace or None
    candidates = look(kind, namespace)
    if reference.get("name"):
        return [
            manifest
            for manifest in candidates
            if metadata(manifest).get("name") == reference["name"]
        ]
    return [
        manifest
        for manifest in candidates
        if selects(reference.get("selector") or {}, labels_of(manifest))
    ]


def _note(ruling: Ruling, failure: _Failure, policy: Policy, binding: Manifest) -> None:
    name = str(metadata(binding).get("name", ""))
    if failure.skipped:
        ruling.skipped.append(f"{POLICY.kind} '{policy.name}': {failure.message}")
        return
    actions = dig(binding, "spec", "validationActions") or ()
    if "Deny" in actions:
        ruling.denials.append(Denial(policy.name, name, failure.message, failure.reason))
    if "Warn" in actions:
        ruling.warnings.append(
            f"Validation failed for {POLICY.kind} '{policy.name}' with binding '{name}': "
            f"{failure.message}"
        )


# -- what a policy is about


def matches(constraints: Mapping[str, Any], review: Review, *, of_binding: bool = False) -> bool:
    """
    Return whether ``matchConstraints`` (or a binding's ``matchResources``) match this write.

    Args:
        of_binding: The constraints are a binding's. Without rules they match everything.
    """
    rules = constraints.get("resourceRules") or ()
    if not _selected(constraints, review):
        return False
    # The default, Equivalent, matches a rule for any version of the resource.
    exact = constraints.get("matchPolicy") == "Exact"
    if any(
        _covers(rule, review, exact=exact) for rule in constraints.get("excludeResourceRules") or ()
    ):
        return False
    return (of_binding and not rules) or any(_covers(rule, review, exact=exact) for rule in rules)


def _covers(rule: Mapping[str, Any], review: Review, *, exact: bool) -> bool:
    versions = rule.get("apiVersions") or ()
    names = rule.get("resourceNames") or ()
    scope = rule.get("scope") or "*"
    return (
        _one_of(review.kind.group, rule.get("apiGroups") or ())
        and (not exact or _one_of(review.kind.version, versions))
        and _one_of(review.operation, rule.get("operations") or ())
        and any(_is_resource(resource, review) for resource in rule.get("resources") or ())
        and (not names or review.name in names)
        and (scope == "*" or (scope == "Namespaced") == bool(review.namespace))
    )


def _one_of(value: str, listed_values: Sequence[str]) -> bool:
    return "*" in listed_values or value in listed_values


def _is_resource(rule_resource: str, review: Review) -> bool:
    resource, _, subresource = rule_resource.partition("/")
    return resource in {"*", review.plural} and (subresource in {"*", review.subresource})


def _selected(constraints: Mapping[str, Any], review: Review) -> bool:
    object_selector = constraints.get("objectSelector") or {}
    objects = [labels_of(manifest) for manifest in (review.new, review.old) if manifest is not None]
    # The server matches an update if the old or the new object fits.
    if object_selector and not any(selects(object_selector, labels) for labels in objects):
        return False
    namespace_selector = constraints.get("namespaceSelector") or {}
    if not namespace_selector:
        return True
    if review.kind == NAMESPACE:
        return any(selects(namespace_selector, labels) for labels in objects)
    # Cluster-scoped objects other than Namespaces always pass the namespace selector.
    return not review.namespace or selects(
        namespace_selector, labels_of(review.namespace_object or {})
    )


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a selector (``matchLabels``, ``matchExpressions``) matches the labels."""
    match_labels = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in match_labels.items()):
        return False
    return all(_fits(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def _fits(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    is_there = key in labels
    return {
        "In": is_there and labels.get(key) in values,
        "NotIn": not is_there or labels[key] not in values,
        "Exists": is_there,
        "DoesNotExist": not is_there,
    }[requirement["operator"]]
