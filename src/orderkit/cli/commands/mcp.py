"""``orderkit mcp``: let AI agents look, order and change, on behalf of a person."""

from __future__ import annotations

import click

from orderkit.cli.options import platform_option


@click.command("mcp")
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve Streamable HTTP on this loopback port instead of stdio. Each request brings its "
    "person's token.",
)
@click.option(
    "--agent", default="agent", show_default=True, metavar="NAME", help="Name of the agent."
)
@platform_option
def mcp_command(port: int | None, agent: str, platform_file: str | None) -> None:
    """
    Serve the Model Context Protocol: agents read, plan, order, change, extend and end.

    On stdio, ORDERKIT_TOKEN holds the token of the person for whom the agent acts. Each write waits
    for a person, unless 'orderkit team change --agents write' says else. No agent approves.

    Example: ORDERKIT_TOKEN=... orderkit mcp --agent claude
    """
    import os

    from ground.errors import NotFoundError
    from ground.names import check_label
    from orderkit.adapters.http import check_url
    from orderkit.cli.connecting import load_settings
    from orderkit.cli.serving.mcp_server import Gateway, mcp_server

    service = load_settings(platform_file).service.url
    if not service:
        raise NotFoundError(
            "platform.yaml has no spec.service", hint="set spec.service.url in platform.yaml"
        )
    url = check_url("service.url", service)
    token = os.environ.get("ORDERKIT_TOKEN", "")
    if port is None and not token:
        raise NotFoundError(
            "ORDERKIT_TOKEN is empty: nothing proves for whom the agent acts",
            hint="orderkit access add NAME --team TEAM --right read --right change makes a token",
        )
    own = None if port else {"Authorization": f"Bearer {token}"}
    server = mcp_server(Gateway(url, check_label("--agent", agent), own))
    if port:
        server.run("streamable-http", host="127.0.0.1", port=port, stateless_http=True)
    else:
        server.run("stdio")
