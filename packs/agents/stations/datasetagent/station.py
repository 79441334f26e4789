"""The stations of an agent, by the names in the Composition."""

from __future__ import annotations

from .budget import emit_budget
from .dashboard import render_dashboard
from .iam import render_iam
from .tuning import compute_tuning
from .validating import validate_dataset
from .workloads import render_workloads

stations = {
    "validate-dataset": validate_dataset,
    "compute-tuning": compute_tuning,
    "render-iam": render_iam,
    "render-workloads": render_workloads,
    "render-dashboard": render_dashboard,
    "emit-budget": emit_budget,
}
