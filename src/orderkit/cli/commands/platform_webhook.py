"""``orderkit platform webhook``: register the webhooks that report to the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option, platform_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ground.names import RepoId
    from orderkit.flows.platform import Platform

_PLAN_S = 120.0


@click.command("webhook")
@click.option("--team", "teams", multiple=True, help="A team's organisation. Repeatable.")
@click.option(
    "--repository", "repositories", metavar="OWNER/REPO", multiple=True, help="Repeatable."
)
@click.option(
    "--url",
    metavar="URL",
    help="Address at which the forge reaches the service. "
    "Default: spec.service.publicUrl, else url.",
)
@click.option(
    "--missed",
    is_flag=True,
    help="Also do in this process what the service missed: plan every open pull request whose "
    "head has no plan, and check every order whose newest commit is not checked.",
)
@platform_option
@json_option
def platform_webhook(
    teams: tuple[str, ...],
    repositories: tuple[str, ...],
    url: str | None,
    missed: bool,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Register webhooks on the forge, so that the service plans pull requests and checks pushes.

    Creates one webhook for each team; without --team and --repository, for every team. Bootstrap
    and 'orderkit team add' do so, too. Run it when the service's address or secret changes.

    Example: orderkit platform webhook --url https://orderkit.example.com

    Example: orderkit platform webhook --missed
    """
    from ground.errors import OrderkitError
    from orderkit.cli.connecting import connect, load_settings, token
    from orderkit.cli.output import emit_json
    from orderkit.core.platform.webhook_key import hook_key
    from orderkit.flows.team.webhooks import ensure_webhooks, service_webhook

    settings = load_settings(platform_file)
    targets: list[str | RepoId] = [*teams, *map(_repository, repositories)]
    secret = token(settings.service)
    service = _address(url or settings.service_address)
    platform = connect(settings)
    webhook = service_webhook(service, hook_key(secret))
    hooked = ensure_webhooks(platform, targets, webhook)
    if not as_json:
        for target in hooked:
            say(f"{target}: pull requests are reported to {webhook.url}")
    planned = []
    for pull, state, summary in _planned(platform, targets) if missed else ():
        planned.append({"pull": pull, "state": state, "summary": summary})
        if not as_json:
            say(f"{pull}: {summary}")
    checked = []
    for repo, state, summary in _checked(platform, targets) if missed else ():
        checked.append({"repository": repo, "state": state, "summary": summary})
        if not as_json:
            say(f"{repo}: {summary}")
    if as_json:
        report = {"url": webhook.url, "targets": [str(target) for target in hooked]}
        planned_report = {"planned": planned, "checked": checked} if missed else {}
        emit_json("orderkit.platform-webhook/v1", {**report, **planned_report})
    return OrderkitError.exit_code if any(plan["state"] == "error" for plan in planned) else 0


def _planned(platform: Platform, targets: list[str | RepoId]) -> Iterator[tuple[str, str, str]]:
    """Plan the pull requests without a plan; yield each with its state and a summary."""
    from contextlib import suppress

    from ground.errors import InProgressError, NotFoundError, OrderkitError, RefusedError
    from orderkit.cli.time_limits import within
    from orderkit.flows.change.reviewing import keep_judged
    from orderkit.flows.plan.pull_requests import keep_planned, say_failed
    from orderkit.flows.plan.unplanned_pulls import unplanned

    for repo, number in unplanned(platform, targets):
        try:
            with within(_PLAN_S):
                judged = keep_planned(platform, repo, number).judged
                with suppress(InProgressError):  # the forge does not show yet who pushed
                    keep_judged(platform, repo, number)
            yield f"{repo}#{number}", judged.state, judged.summary
        except (NotFoundError, RefusedError):
            continue  # merged, closed or ended meanwhile
        except OrderkitError as error:
            say_failed(platform, repo, number, str(error))
            yield f"{repo}#{number}", "error", f"no plan: {error}"


def _checked(platform: Platform, targets: list[str | RepoId]) -> Iterator[tuple[str, str, str]]:
    """Check the newest commits without a status; yield each with its state and a summary."""
    from ground.errors import NotFoundError
    from orderkit.flows.order.commit_status import keep_checked, unchecked

    for repo in unchecked(platform, targets):
        try:
            check = keep_checked(platform, repo)
        except NotFoundError:
            continue  # ended meanwhile, or of a kit that the pack no longer has
        yield str(repo), check.state, check.summary


def _address(url: str) -> str:
    from urllib.parse import urlsplit

    from ground.errors import InvalidInputError

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInputError(
            "--url", url, "is not the address of a service", hint="https://host"
        )
    return url.rstrip("/")


def _repository(text: str) -> RepoId:
    from ground.errors import InvalidInputError
    from ground.names import RepoId

    repo = RepoId.parse(text)
    if repo is None:
        raise InvalidInputError(
            "--repository", text, "is not an OWNER/REPO", hint="--repository ae86/garage-ae86"
        )
    return repo
