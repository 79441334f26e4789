"""
Resolve tags to digests at a registry, and write them where releases are pinned.

    scripts/digests.py --registry HOST [--pack DIR]     pack.yaml: v1.2.3 becomes v1.2.3@sha256:...
    scripts/digests.py --registry HOST Containerfile    FROM name:tag becomes name:tag@sha256:...
    scripts/digests.py --check [--pack DIR] [Containerfile ...]   exit 10 if a digest is missing

Of FROM name:tag@${DIGEST}, ARG DIGEST becomes ARG DIGEST=sha256:...
A tag can be moved to other content, a digest cannot. Only what the registry answers is written.
Needs a registry that lets anybody pull, or gives out tokens for that.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import requests

TYPES = (
    "application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
USE = re.compile(
    r"__ORDERKIT_REGISTRY__/(?P<path>[^\s:]+):__ORDERKIT_VERSION_(?P<pin>[A-Z0-9_]+)__"
)
FROM = re.compile(r"^FROM +(?P<path>[^\s:@]+):(?P<tag>[^\s@]+)(?P<digest>@\S+)?", re.MULTILINE)
TIMEOUT_S = 60


def main() -> int:
    """Run the script; return its exit code."""
    parser = argparse.ArgumentParser(description="Pin images by digest.")
    parser.add_argument("files", nargs="*", type=Path, help="Containerfiles instead of a pack")
    parser.add_argument("--pack", type=Path, default=Path())
    parser.add_argument("--registry", help="host, or address with its scheme")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 10 if one lacks")
    options = parser.parse_args()
    if not options.check and not options.registry:
        parser.error("--registry says where to ask")
    missing = []
    for file in options.files or [options.pack / "pack.yaml"]:
        text = file.read_text()
        for path, tag, unpinned, joint in images(file, text):
            missing.append(f"{file}: {path}:{tag}")
            if not options.check:
                digest = resolved(options.registry, path, tag)
                text = text.replace(unpinned, f"{unpinned}{joint}{digest}")
        if not options.check:
            file.write_text(text)
    print("\n".join(missing) or "every release has its digest")
    return 10 if options.check and missing else 0


def images(file: Path, text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield path, tag, the text to complete, and what joins its digest, for each image without."""
    if file.name != "pack.yaml":
        for found in {match[0]: match for match in FROM.finditer(text)}.values():
            argument = re.fullmatch(r"@\$\{(\w+)\}", found["digest"] or "")
            if not found["digest"]:
                yield found["path"], found["tag"], f"{found['path']}:{found['tag']}", "@"
            elif argument and re.search(rf"^ARG {argument[1]}$", text, re.MULTILINE):
                yield found["path"], found["tag"], f"ARG {argument[1]}", "="
        return
    paths = {
        match["pin"].lower().replace("_", "-"): match["path"]
        for manifest in sorted((file.parent / "gitops").rglob("*.yaml"))
        for match in USE.finditer(manifest.read_text())
    }
    for pin, path in sorted(paths.items()):
        line = re.search(rf"^ +{re.escape(pin)}: +(?P<tag>v?[0-9][^\s@]*)$", text, re.MULTILINE)
        if line:
            yield path, line["tag"], line[0], "@"


def resolved(registry: str, path: str, tag: str) -> str:
    """Return the digest that the registry has for a tag."""
    base = registry if "://" in registry else f"https://{registry}"
    url, headers = f"{base}/v2/{path}/manifests/{tag}", {"Accept": TYPES}
    answer = requests.head(url, headers=headers, timeout=TIMEOUT_S)
    if answer.status_code == requests.codes.unauthorized:
        headers["Authorization"] = f"Bearer {token(answer.headers.get('WWW-Authenticate', ''))}"
        answer = requests.head(url, headers=headers, timeout=TIMEOUT_S)
    answer.raise_for_status()
    digest = answer.headers.get("Docker-Content-Digest", "")
    if not DIGEST.match(digest):
        sys.exit(f"{url}: no digest in the answer, but '{digest}'")
    return digest


def token(challenge: str) -> str:
    """Return the token for pulling that the registry's challenge leads to."""
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    if "realm" not in fields:
        sys.exit(f"the registry wants credentials: {challenge or 'no challenge'}")
    realm = fields.pop("realm")
    answer = requests.get(realm, params=fields, timeout=TIMEOUT_S)
    answer.raise_for_status()
    found: dict[str, str] = answer.json()
    return found.get("token") or found["access_token"]


if __name__ == "__main__":
    sys.exit(main())
