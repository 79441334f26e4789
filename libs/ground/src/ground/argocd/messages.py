"""
Translate Argo CD's messages into plain words, with advice for each.

A message goes through several programs on its way (``Failed to load target state: failed to
generate manifest for source 1 of 1: rpc error: code = Unknown desc = …``); what those add is
taken off. The texts are those of Argo CD 3.6.1, as observed; unknown ones are passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WRAPPINGS = re.compile(
    r"^(?:Failed to load (?:target|live) state: "
    r"|failed to generate manifest for source \d+ of \d+: "
    r"|rpc error: code = \w+ desc = "
    r"|Manifest generation error \(cached\): "
    r"|ComparisonError: "
    r"|one or more objects failed to apply, reason: "
    r"|one or more synchronization tasks completed unsuccessfully, reason: "
    r"|one or more synchronization tasks are not valid: "
    r"|failed to list refs: )"
)
_RETRYING = re.compile(r"\. Retrying attempt #\d+ at [^.]+\.$|\s*\(retried \d+ times\)\.$")


@dataclass(frozen=True, slots=True)
class _Known:
    """A known message, its plain words (a template for `re.Match.expand`), and advice."""

    pattern: re.Pattern[str]
    words: str
    advice: str


def _known_message(pattern: str, words: str, advice: str) -> _Known:
    return _Known(re.compile(pattern, re.DOTALL), words, advice)


_KNOWN = (
    _known_message(
        r"^(.*): app path does not exist$",
        r"the repository has no folder \1",
        "put it back; a folder that shall be empty needs a .gitkeep",
    ),
    _known_message(
        r"^error getting app source type: multiple application sources defined: (.*)$",
        r"a file .argocd-source.yaml asks for another tool than the Application's: \1",
        "remove it with a new commit; orders are plain manifests",
    ),
    _known_message(
        r"unable to resolve '([^']*)' to a commit SHA",
        r"the repository has no branch or commit \1",
        "look at targetRevision of the Application and at the repository's branches",
    ),
    _known_message(
        r"^repository not found",
        "the repository does not exist, or Argo CD's credentials do not show it",
        "look at the repository on the forge and at Argo CD's repository secrets",
    ),
    _known_message(
        r"^authentication required",
        "the repository is private and Argo CD has no credentials for it",
        "repeat 'orderkit bootstrap', which gives each team a Secret of type repo-creds",
    ),
    _known_message(
        r"^authorization failed|^authentication failed|Invalid username or token",
        "the forge refuses Argo CD's credentials",
        "delete the team's Secret of type repo-creds in namespace argocd, and repeat 'orderkit "
        "bootstrap'",
    ),
    _known_message(
        r'^Get "([^"]*?)/info/refs[^"]*": (.*)$',
        r"the forge cannot be reached at \1: \2",
        "see whether the forge runs and whether Argo CD can reach it under this address",
    ),
    _known_message(
        r'^Failed to unmarshal "([^"]+)": (?:failed to unmarshal manifest: )?(.*)$',
        r"\1 is not valid YAML: \2",
        "correct the file with a new commit",
    ),
    _known_message(
        r"^connection error: desc = .*?(dial tcp [^\"]*)\"?$",
        r"Argo CD's repo-server does not answer: \1",
        "see whether argocd-repo-server runs; afterwards a refresh is needed",
    ),
    _known_message(
        r"^Application referencing project (\S+) which does not exist$",
        r"its AppProject \1 does not exist",
        "see whether the team's file in the ledger was delivered",
    ),
    _known_message(
        r"^application repo (\S+) is not permitted in project '([^']*)'",
        r"AppProject \2 does not allow the repository \1",
        "an order lives in its team's organisation: order it again there",
    ),
    _known_message(
        r"^application destination server '[^']*' and namespace '([^']*)' do not match any of the"
        r" allowed destinations in project '([^']*)'",
        r"AppProject \2 does not allow the namespace \1",
        "look at destinations of the AppProject",
    ),
    _known_message(
        r"^resource (\S*):(\S+) is not permitted in project (\S+)$",
        r"AppProject \3 does not allow objects of kind \1:\2",
        r"take it out of the repository; if it is the order's XR, 'orderkit team add \3' allows it",
    ),
    _known_message(
        r"^namespace (\S+) is not permitted in project '?([^']*)'?",
        r"AppProject \2 does not allow the namespace \1",
        "take it out of the repository",
    ),
    _known_message(
        r'^The Kubernetes API could not find version "([^"]*)" of ([^/]*)/(\S+) for requested',
        r"the cluster does not know the kind \3 of \2 in version \1",
        "see whether its definition was delivered: kubectl get crd",
    ),
    _known_message(
        r"^The Kubernetes API could not find ([^/]*)/(\S+) for requested resource",
        r"the cluster does not know the kind \2 of \1",
        "see whether its definition was delivered: kubectl get crd",
    ),
    _known_message(
        r'^namespaces "([^"]*)" not found$',
        r"the namespace \1 does not exist",
        "see whether what makes it was delivered",
    ),
    _known_message(
        r"^Skipping sync attempt to \S+: auto-sync will wipe out all resources$",
        "the repository holds no manifest any more, and Argo CD refuses to remove everything",
        "put the manifest back, or end the order: orderkit destroy",
    ),
    _known_message(
        r"^(\S+) is part of applications (.*)$",
        r"\1 is delivered by more than one Application: \2",
        "take it out of all of them but one",
    ),
    _known_message(
        r"^admission webhook|denied request: |is forbidden: ValidatingAdmissionPolicy",
        "",
        "correct it with a new commit, as the message says",
    ),
    _known_message(
        r" is invalid: |cannot be handled as a |strict decoding error|unknown field",
        "",
        "correct the file with a new commit",
    ),
)


def plain(message: str) -> str:
    """Return a message of Argo CD in plain words, on one line."""
    bare = _bare(message)
    known_message = _find(bare)
    match = known_message.pattern.search(bare) if known_message and known_message.words else None
    plain_text = match.expand(known_message.words) if known_message and match else bare
    return " ".join(plain_text.split())


def advice_for(message: str) -> str:
    """Return the advice for a message; empty if the message is unknown."""
    bare = _bare(message)
    known_message = _find(bare)
    match = known_message.pattern.search(bare) if known_message else None
    return match.expand(known_message.advice) if known_message and match else ""


def _bare(message: str) -> str:
    """Remove the prefixes that other programs add to a message."""
    text = _RETRYING.sub("", message.strip())
    while match := _WRAPPINGS.match(text):
        text = text[match.end() :]
    return text.strip()


def _find(bare: str) -> _Known | None:
    return next(
        (known_message for known_message in _KNOWN if known_message.pattern.search(bare)), None
    )
