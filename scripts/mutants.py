"""
Put single faults into a copy of the houses, and count the ones that the tests notice.

First the tests run once under coverage. That gives the tests that reach each line, and how long
each takes. Then faults are drawn with a fixed seed, as many in each house. For each fault, only
tests that reach its line run. A fault is *noticed* if one of them fails, ends the process or takes
too long. Otherwise it *survived*, or *no test covers it*.

    .venv/bin/python scripts/mutants.py --count 200             # all tests: hours
    .venv/bin/python scripts/mutants.py --count 20 tests/unit   # only these tests count
    .venv/bin/python scripts/mutants.py --measured --seed 2     # other faults, same measurement

Everything runs in a copy of the tree in `.cache/mutants`; the checkout stays as it is. The verdicts
are in `.cache/mutants/report.jsonl`. This module is also the pytest plugin that notes which test
runs.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise, zip_longest
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.houses import HOUSES, LIBRARIES  # noqa: E402 - the path comes first

FOLDER = ROOT / ".cache" / "mutants"
TREE, DATA, TIMES, REPORT = (FOLDER / n for n in ("tree", "data", "times.json", "report.jsonl"))
SOURCES = os.pathsep.join(str(TREE / house.source.parent) for house in HOUSES)
ALL_TESTS = [*(f"{house.folder}/tests" for house in HOUSES if house.folder != "src"), "tests"]
ROOMS = {
    "core": (
        *(str(house.source) for house in LIBRARIES),
        *("src/orderkit/core", "extras/workshop/src/orderkit_workshop/check"),
        "extras/workshop/src/orderkit_workshop/generate",
    ),
    "flows": ("src/orderkit/flows", "extras/workshop/src/orderkit_workshop/stories"),
    "adapters": ("src/orderkit/adapters", "extras/standins/src/orderkit_standins"),
    "web": ("src/orderkit/web",),
}
TEST, TIMES_FILE = "ORDERKIT_MUTANTS_TEST", "ORDERKIT_MUTANTS_TIMES"
SETTINGS = f"""[run]
source_pkgs = {", ".join(house.package for house in HOUSES)}
parallel = true
sigterm = true
disable_warnings = no-data-collected
data_file = {DATA}
context = ${{{TEST}-}}
"""
TESTS_S = 120.0
"""How long the tests of one fault may take, as measured."""
VERDICTS = ("noticed", "survived", "no test covers it")
OTHER_OPERATOR: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """`new` in place of the bytes from `begin` to `end`."""

    kind: str
    line: int
    lines: range
    """From the statement's first line to the last line of the fault."""
    begin: int
    end: int
    new: str

    def put_into(self, source: bytes) -> bytes:
        """Return the module with the fault."""
        return source[: self.begin] + self.new.encode() + source[self.end :]

    def change(self, source: bytes) -> str:
        """Return what stood there and what stands there instead, in one line."""
        return " ".join(f"{source[self.begin : self.end].decode()} -> {self.new}".split())


def faults(source: bytes) -> Iterator[Fault]:
    """Yield every fault that can be put into the functions of a module."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for since, (kind, first, last, new) in _places(ast.parse(source), 0):
        end_line, end = last.end_lineno or last.lineno, last.end_col_offset or 0
        begin = starts[first.lineno - 1] + first.col_offset
        # the effect of an `except` is a statement itself, and reached less often than its `try`
        from_line = first.lineno if isinstance(first, ast.stmt) else min(since, first.lineno)
        lines = range(from_line, end_line + 1)
        yield Fault(kind, first.lineno, lines, begin, starts[end_line - 1] + end, new)


Place = tuple[str, ast.stmt | ast.expr, ast.stmt | ast.expr, str]
"""A kind, the first and the last node that give way, and what takes their place."""


def _places(node: ast.AST, since: int) -> Iterator[tuple[int, Place]]:
    """
    Yield places below a node with the line where their statement begins.

    Only functions have places; annotations, decorators and f-strings have none.

    Args:
        since: The line where the statement around begins; 0 outside of functions.
    """
    if isinstance(node, ast.JoinedStr | ast.arg):  # Python 3.11 misplaces what is in an f-string
        return
    if since and isinstance(node, ast.stmt):
        since = node.lineno
    if since:
        yield from ((since, place) for place in _of_statement(node))
        if isinstance(node, ast.expr):
            for kind, new in _of_expression(node):
                yield since, (kind, node, node, f"({ast.unparse(new)})")
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        since = since or node.lineno
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children if name not in ("annotation", "returns", "decorator_list") else ():
            if isinstance(child, ast.AST):
                yield from _places(child, since)


def _of_statement(node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.Raise) and "AssertionError" not in ast.unparse(node):
        yield "raise removed", node, node, "pass"  # an AssertionError is never raised
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "call removed", node, node, "pass"
    if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[0], ast.Pass):
        yield "except's effect removed", node.body[0], node.body[-1], "pass"
    tests = node.ifs if isinstance(node, ast.comprehension) else ()
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        tests = [node.test]
    for test in tests:
        yield "condition negated", test, test, f"(not ({ast.unparse(test)}))"


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(left, operators, others):
            for at, operator in enumerate(operators):
                other = OTHER_OPERATOR[type(operator)]()
                flipped = [*operators[:at], other, *operators[at + 1 :]]
                yield "comparison flipped", ast.Compare(left, flipped, others)
        case ast.BoolOp(operator, values):
            other_word = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield "and/or swapped", ast.BoolOp(other_word, values)
            for at in range(len(values)):
                rest = [*values[:at], *values[at + 1 :]]
                dropped = ast.BoolOp(operator, rest) if len(rest) > 1 else rest[0]
                yield "operand dropped", dropped
        case ast.Subscript(value, ast.Slice(lower, upper, step), context):
            for slice_ in (
                *([ast.Slice(_moved(lower, 1), upper, step)] if lower else ()),
                *([ast.Slice(lower, _moved(upper, -1), step)] if upper else ()),
            ):
                yield "slice off by one", ast.Subscript(value, slice_, context)
        case ast.Call(function, arguments, keywords):
            for at, (one, next_) in enumerate(pairwise(arguments)):
                is_starred = isinstance(one, ast.Starred) or isinstance(next_, ast.Starred)
                if not is_starred and ast.unparse(one) != ast.unparse(next_):
                    swapped = [*arguments[:at], next_, one, *arguments[at + 2 :]]
                    yield "arguments swapped", ast.Call(function, swapped, keywords)


def _moved(bound: ast.expr, by: int) -> ast.expr:
    return ast.BinOp(bound, ast.Add() if by > 0 else ast.Sub(), ast.Constant(1))


def choose(tests: Iterable[str], times_s: Mapping[str, float], limit_s: float) -> list[str]:
    """Return tests to run within a time: half of it for the quickest, then of each module one."""
    by_time = sorted(tests, key=lambda test: (times_s[test], test))
    until_s = accumulate(times_s[test] for test in by_time)
    quick = sum(seconds <= limit_s / 2 for seconds in until_s)
    modules: dict[str, list[str]] = defaultdict(list)
    for test in by_time[quick:]:
        modules[test.partition("::")[0]].append(test)
    rest = (test for row in zip_longest(*modules.values()) for test in row if test)
    chosen: list[str] = []
    for test in (*by_time[:quick], *rest):
        limit_s -= times_s[test]
        if chosen and limit_s < 0:
            break
        chosen.append(test)
    return chosen


# --- the plugin


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Attribute the lines that run from here on to this test, also those of child processes."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
        os.environ[TEST] = item.nodeid
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, object]:
    """Attribute the lines that a module's import runs to the module: its tables may call them."""
    measuring = coverage.Coverage.current()
    if measuring is None or not isinstance(collector, pytest.Module):
        return (yield)
    measuring.switch_context(collector.nodeid)
    try:
        return (yield)
    finally:
        measuring.switch_context("")


_times_s: dict[str, float] = defaultdict(float)
_bad: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _times_s[report.nodeid] += report.duration
    if not report.passed:
        _bad.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        passed = {test: t for test, t in _times_s.items() if test not in _bad}
        Path(os.environ[TIMES_FILE]).write_text(json.dumps(passed))


# --- the run


def measure(tests: Sequence[str], workers: int) -> None:
    """Copy the tree and run the tests there once, under coverage."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    TREE.mkdir(parents=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):  # noqa: S603
        if name and (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name, follow_symlinks=False)
    (TREE / ".cache").mkdir()
    for tool in (ROOT / ".venv", *(ROOT / ".cache").iterdir()):
        if tool != FOLDER:
            (TREE / tool.relative_to(ROOT)).symlink_to(tool)
    settings = FOLDER / "coveragerc"
    settings.write_text(SETTINGS)
    environment = {"COVERAGE_PROCESS_START": str(settings), TIMES_FILE: str(TIMES)}
    _pytest(["-n", str(workers), "-p", "scripts.mutants", *tests], None, environment)
    measured = coverage.Coverage(config_file=str(settings))
    measured.combine()
    measured.save()


def _pytest(arguments: Sequence[str], timeout_s: float | None, more: Mapping[str, str]) -> int:
    """Run pytest in the copy; return its exit code, or -1 if it took too long."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, **more}
    command = [f"{TREE}/.venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with (FOLDER / "pytest.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603  our own tests
            [*command, *arguments],
            cwd=TREE, env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def draw(seed: int, count: int) -> Iterator[tuple[str, Path, Fault]]:
    """Yield faults by chance, as many for each room and, within a room, for each kind."""
    for at, (room, folders) in enumerate(ROOMS.items()):
        by_kind: dict[str, list[tuple[Path, Fault]]] = defaultdict(list)
        for path in sorted(path for name in folders for path in (TREE / name).rglob("*.py")):
            for fault in faults(path.read_bytes()):
                by_kind[fault.kind].append((path, fault))
        chance = random.Random(f"{seed} {room}")  # noqa: S311  no secrets
        for found in by_kind.values():
            chance.shuffle(found)
        kinds = chance.sample(sorted(by_kind), len(by_kind))
        rounds = (found for row in zip_longest(*(by_kind[kind] for kind in kinds)) for found in row)
        for path, fault in islice(filter(None, rounds), (count + at) // len(ROOMS)):
            yield room, path, fault


def judge(
    path: Path, fault: Fault, data: coverage.CoverageData, times_s: Mapping[str, float]
) -> tuple[str, int, int]:
    """Return the verdict on a fault, the number of tests that ran, and how many reach its line."""
    reached = data.contexts_by_lineno(str(path))
    contexts = {context for line in fault.lines for context in reached.get(line, ())}
    covering = {t for t in times_s if t in contexts or t.partition("::")[0] in contexts}
    chosen = choose(covering, times_s, TESTS_S)
    if not chosen:
        return VERDICTS[2], 0, 0
    sound = path.read_bytes()
    try:
        path.write_bytes(fault.put_into(sound))
        timeout_s = 60 + 5 * sum(times_s[test] for test in chosen)
        code = _pytest(["-n", "0", "-x", *chosen], timeout_s, {"PYTHONDONTWRITEBYTECODE": "1"})
    finally:
        path.write_bytes(sound)
    return VERDICTS[code == 0], len(chosen), len(covering)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=200, help="faults (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="which faults (default: 1)")
    parser.add_argument("--workers", type=int, default=3, help="workers that measure (default: 3)")
    parser.add_argument("--measured", action="store_true", help="keep the last measurement")
    parser.add_argument("tests", nargs="*", default=ALL_TESTS, help="tests (default: all)")
    options = parser.parse_args()
    if not options.measured:
        measure(options.tests, options.workers)
    data = coverage.CoverageData(str(DATA))
    data.read()
    times_s = json.loads(TIMES.read_text())
    counts: dict[str, Counter[str]] = {room: Counter() for room in ROOMS}
    with REPORT.open("w") as report:
        for room, path, fault in draw(options.seed, options.count):
            verdict, ran, covering = judge(path, fault, data, times_s)
            change = fault.change(path.read_bytes())
            counts[room][verdict] += 1
            row = {
                "room": room, "file": str(path.relative_to(TREE)), "line": fault.line,
                "kind": fault.kind, "change": change, "verdict": verdict,
                "tests": ran, "covering": covering,
            }  # fmt: skip
            print(json.dumps(row), file=report, flush=True)
            print(f"{verdict:18}{row['file']}:{fault.line} {fault.kind}: {change}"[:200])
    print(f"\n{'room':10}" + "".join(f"{verdict:>20}" for verdict in VERDICTS))
    for room, found in counts.items():
        print(f"{room:10}" + "".join(f"{found[verdict]:>20}" for verdict in VERDICTS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
