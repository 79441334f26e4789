"""
The step by which a task of the portal fails with the service's own sentence.

Backstage's request action fails with the fixed text "Unable to complete request" (observed on
Roadie's http-request 5.8.0), and no action of an unmodified Backstage fails with a text of one's
choice. The same action quotes a header value that HTTP does not allow, before it sends anything.
So requests continue on a refusal, and the next step has the sentence as such a header.

Pure; called by ``orderkit_workshop.generate.day2_forms`` and ``core.portal.service_copy``.
"""

from __future__ import annotations

from typing import Any

REFUSED = "refused"
"""The step's id."""
_BAD = 400


def refusal_step(*steps: str) -> dict[str, Any]:
    """
    Return the step that fails if one of these requests was refused; otherwise it is skipped.

    Args:
        steps: Ids of requests that continue on a bad response.
    """
    output = f"({' or '.join(f'steps.{step}' for step in steps)}).output"
    error = f"{output}.body.error"
    message = f"{error}.message or {output}.body.message or 'the service did not say why'"
    hint = f"(' (' ~ {error}.hint ~ ')') if {error}.hint else ''"
    return {
        "id": REFUSED,
        "name": "Was it accepted?",
        "if": f"${{{{ {output}.code >= {_BAD} }}}}",
        "action": "http:backstage:request",
        "input": {
            "method": "GET",
            "path": "/proxy/orderkit/healthz",
            "logRequestPath": False,
            # The dash is not a character of a header, which makes the action fail and quote it.
            "headers": {"sentence": f"${{{{ ({message}) ~ ({hint}) ~ ' — This' }}}}"},
        },
    }
