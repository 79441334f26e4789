"""
The commands with their lines in ``orderkit --help``, and that text as it is usually printed.

click's import takes most of the time of ``--help``, so it is not used for that text. A test
compares the text with click's own.
"""

from __future__ import annotations

import os
import sys

COMMANDS = {
    "up": ("", "Run the embedded platform until ctrl-C."),
    "bootstrap": ("bootstrap", "Bring a platform up, or show what that would take."),
    "doctor": ("doctor", "Say what is missing and what to do about it."),
    "support-bundle": ("support_bundle", "Write an archive for support, without secrets."),
    "demo": ("", "Show the whole loop on a platform of its own."),
    "order": ("ordering", "Order a kit and wait until it is Ready."),
    "register": ("orders", "Enter an order that is written already into the ledger."),
    "adopt": ("orders", "Take over a repository made by hand, or a live XR."),
    "list": ("orders", "List all orders and how they are."),
    "status": ("orders", "Say how one order is, at which commit, and why."),
    "outputs": ("ordering", "Print what an order was made for, for programs."),
    "wait": ("ordering", "Wait until an order is Ready, gone, or at a commit."),
    "trace": ("orders", "Show an order's tree and what fails first."),
    "events": ("orders", "Tell what the cluster said about an order in the last hour."),
    "plan": ("plan", "Say what a change will do, down to composed resources."),
    "change": ("changes", "Change fields of a live order through Git."),
    "merge": ("changes", "Merge a pull request that somebody else approved."),
    "approve": ("changes", "Approve an order or a change that waits, or decline it."),
    "approvals": ("changes", "List orders and changes that wait for approval."),
    "revert": ("changes", "Take back what one commit did to an order."),
    "history": ("changes", "Tell who changed what in an order, and why."),
    "log": ("orders", "Tell who did what to all orders, newest first, and why."),
    "campaign": ("campaign", "Make one change over many orders, in waves."),
    "lease": ("lease", "Show, extend and sweep how long orders live."),
    "cost": ("cost", "Say what orders cost in a month or another period, from Git."),
    "prices": ("cost", "Make price tables from the price lists of clouds."),
    "repair": ("orders", "Undo what was done to an order by hand, where that is safe."),
    "destroy": ("orders", "End an order and prove that nothing is left."),
    "backup": ("backup", "Copy the platform's repositories into a folder."),
    "restore": ("backup", "Bring repositories back from a backup."),
    "team": ("team", "Add and list teams."),
    "kit": ("", "Start, write, check and test the kits of a pack."),
    "init": ("", "Start a pack: a repository for kits of your own."),
    "serve": ("serve", "Run the HTTP service for portals and programs."),
    "mcp": ("serve", "Let AI agents look and propose, on behalf of a person."),
    "notify": ("notify", "See who is notified of what, and try channels."),
    "console": ("console", "Make a link that signs you in to the console."),
    "functions": ("", "Bring and list programs of Composition functions."),
    "stations": ("serve", "Serve a pack's stations to Crossplane over gRPC."),
    "access": ("access", "Let programs use the service."),
    "forge": ("forge", "Try on the forge what Orderkit relies on."),
    "platform": ("platform", "See what a platform would get, and upgrade it."),
    "validate": ("validate", "Validate orders' files as the API server will."),
    "schema": ("validate", "Print the JSON Schema of a file such as platform.yaml."),
    "edit": ("edit", "Edit values of a YAML file and leave every other byte alone."),
    "render": ("templates", "Render a skeleton as the portal would, or check it."),
    "run": ("templates", "Run a scaffolder template: a file, or one of the pack."),
}
"""Each command's module in ``commands``, and its line in ``--help``, which imports none."""
FORMER = {"function": "stations"}
"""Former names of commands, which images in use may still start."""
EXTRA_OF = {
    "demo": "embedded",
    "functions": "workshop",
    "init": "workshop",
    "kit": "workshop",
    "up": "embedded",
}
"""The commands that another distribution brings, and the extra that installs it."""
READING = frozenset(
    {
        *(
            "cost",
            "approvals",
            "doctor",
            "edit",
            "events",
            "history",
            "list",
            "log",
            "outputs",
            "plan",
            "render",
            "status",
            "trace",
        ),
        "validate",
        "wait",
    }
)
"""Commands of which nothing remains but what they print."""
SUMMARY = "Platform orders as files in Git, from a form to their proven end."
EPILOG = (
    "Try it: 'orderkit up' in one terminal, 'orderkit order garage team_name=ae86",
    "stage=stage2' in another.",
)
_OPTIONS = {
    "--version": "Show the version and exit.",
    "--no-color": "Print no colours; NO_COLOR in the environment does the same.",
    "-h, --help": "Show this message and exit.",
}
_WIDTH = 80
"""click fits lines to 80 columns; only in a narrower terminal it breaks them elsewhere."""


def help_text() -> str | None:
    """Return the text of ``orderkit --help``; None in a terminal so narrow that lines must wrap."""
    if _columns() < _WIDTH:
        return None
    sections = (
        ("Usage: orderkit [OPTIONS] COMMAND [ARGS]...", ()),
        (f"  {SUMMARY}", ()),
        ("Options:", _aligned(_OPTIONS)),
        ("Commands:", _aligned({name: line for name, (_, line) in COMMANDS.items()})),
        (f"  {EPILOG[0]}", [f"  {EPILOG[1]}"]),
    )
    return "\n\n".join("\n".join((head, *lines)) for head, lines in sections) + "\n"


def _aligned(rows: dict[str, str]) -> list[str]:
    width = max(map(len, rows))
    return [f"  {name:<{width}}  {text}" for name, text in rows.items()]


def _columns() -> int:
    """Return the terminal's width as ``shutil.get_terminal_size`` does, which imports much."""
    text = os.environ.get("COLUMNS", "")
    if text.isdigit() and int(text):
        return int(text)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _WIDTH
    except (ValueError, OSError):  # no terminal
        return _WIDTH
