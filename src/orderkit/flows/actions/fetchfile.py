"""
``fetch:template:file`` and ``fetch:plain:file``: bring one file into the workspace.

As in Backstage the path is not rendered and nothing is tested for being binary, and the mode
is lost: an executable source is refused, so that nobody loses it unknowingly. Text that is no
UTF-8, which Backstage would destroy while rendering, is refused too.
"""

from __future__ import annotations

from orderkit.core.errors import InvalidInputError, RefusedError
from orderkit.core.render import RenderError, SkeletonFile, check_tree, compile_template
from orderkit.core.render.javascript import Closed
from orderkit.flows.actions.context import (
    FLAG,
    MAP,
    TEXT,
    Action,
    ActionContext,
    Inputs,
    Outputs,
    inputs_schema,
    is_executable,
)
from orderkit.flows.actions.fetching import target_path, tree_options
from orderkit.flows.actions.sources import source_file


def _template(context: ActionContext, inputs: Inputs) -> Outputs:
    target = target_path(inputs["targetPath"])
    if target in context.workspace and not inputs.get("replace"):
        context.log(f"{target} is there already and is not replaced")
        return {}
    context.put(target, SkeletonFile(_rendered(_source(context, inputs), inputs)))
    check_tree(context.workspace)
    context.log(f"wrote {target}")
    return {}


def _rendered(source: SkeletonFile, inputs: Inputs) -> bytes:
    options = tree_options(inputs)
    scope = {options.root: Closed(inputs.get("values") or {})}
    try:
        template = compile_template(source.data.decode(), options.delimiters)
        text = template.render(scope, strict=True)
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"{inputs['url']}: is no UTF-8 text: byte {error.start} cannot be read",
            hint="Backstage would destroy it; fetch it with fetch:plain:file",
        ) from error
    except RenderError as error:
        raise error.named(inputs["url"]) from error
    # A lone half of a surrogate pair becomes U+FFFD, as in Node.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _plain(context: ActionContext, inputs: Inputs) -> Outputs:
    target = target_path(inputs["targetPath"])
    context.put(target, SkeletonFile(_source(context, inputs).data))
    check_tree(context.workspace)
    context.log(f"wrote {target}")
    return {}


def _source(context: ActionContext, inputs: Inputs) -> SkeletonFile:
    url = inputs["url"]
    found = source_file(context, url)
    if found.symlink is not None:
        raise RefusedError(f"{url}: is a symbolic link", hint="put a file there")
    if is_executable(found):
        raise InvalidInputError(
            "url",
            url,
            "is executable, and Backstage loses the mode of single files",
            hint="fetch its folder with fetch:template or fetch:plain, which keep modes",
        )
    return found


_REQUIRED = ("url", "targetPath")
FETCH_PLAIN_FILE = Action(
    "fetch:plain:file",
    inputs_schema(_REQUIRED, url=TEXT, targetPath=TEXT, token=TEXT),
    _plain,
    dry_run=True,
)
FETCH_TEMPLATE_FILE = Action(
    "fetch:template:file",
    inputs_schema(
        _REQUIRED,
        url=TEXT,
        targetPath=TEXT,
        token=TEXT,
        values=MAP,
        cookiecutterCompat=FLAG,
        replace=FLAG,
        trimBlocks=FLAG,
        lstripBlocks=FLAG,
    ),
    _template,
    dry_run=True,
)
