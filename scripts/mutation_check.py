"""Takes synchronization away from scripts that are clean, one call at a time, and looks at what is reported.

    .venv/bin/python scripts/mutation_check.py tests/torch/pass examples/*/fixed.py

Each `wait_stream`, `wait_event`, `wait`, `record`, `record_event`, `record_stream` and `synchronize` call is left
out in turn: the receiver and the arguments are still evaluated, the call is not made. Prints a markdown table: what
was left out and which findings came of it. A call without a finding was not needed in that script, or its hazard was
missed: `docs/mutations.md` has the table with a reason for each.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

CALLS = {"wait_stream", "wait_event", "wait", "record_event", "record", "record_stream", "synchronize"}


@dataclass(frozen=True)
class Mutation:
    """One call to leave out."""

    script: Path
    line: int
    call: str
    source: str


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    mutation: Mutation
    findings: tuple[str, ...]
    problem: str | None


class _LeaveOut(ast.NodeTransformer):
    """Replaces the call at one place by a tuple of its receiver and arguments."""

    def __init__(self, line: int, column: int) -> None:
        self.place = (line, column)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = node.func
        if (node.lineno, node.end_col_offset) != self.place or not isinstance(function, ast.Attribute):
            return node
        evaluated = [function.value, *node.args, *(keyword.value for keyword in node.keywords)]
        if function.attr == "record_event":
            # An event that was never recorded, in place of the one recorded here.
            evaluated.append(ast.parse("__import__('torch').cuda.Event()", mode="eval").body)
        parts = ast.Tuple(elts=evaluated, ctx=ast.Load())
        return ast.copy_location(
            ast.Subscript(value=parts, slice=ast.Constant(value=-1), ctx=ast.Load()), node
        )


def mutations(script: Path) -> list[Mutation]:
    """Returns all mutations of a script."""
    text = script.read_text()
    found = []
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in CALLS or node.end_col_offset is None:
            continue
        tree = _LeaveOut(node.lineno, node.end_col_offset).visit(ast.parse(text))
        ast.fix_missing_locations(tree)
        # Lines of the findings must be those of the script: the mutant keeps its layout.
        call = ast.unparse(node)
        mutant = _replace(text, node, ast.unparse(_find(tree, node)))
        found.append(Mutation(script, node.lineno, call, mutant))
    return sorted(found, key=lambda mutation: (mutation.line, mutation.call))


def _find(tree: ast.AST, call: ast.Call) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and (node.lineno, node.end_col_offset) == (
            call.lineno,
            call.end_col_offset,
        ):
            return node
    raise AssertionError("the mutant has the replaced call")


def _replace(text: str, node: ast.Call, replacement: str) -> str:
    lines = text.splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset :].decode()
    # Keep the number of lines.
    lines[first : last + 1] = [before + replacement + after] + ["\n"] * (last - first)
    return "".join(lines)


def run(command: str, mutation: Mutation) -> Outcome:
    """Runs one mutant and returns what was found."""
    with tempfile.TemporaryDirectory() as folder:
        script, trace = Path(folder, mutation.script.name), Path(folder, "run.sstrace")
        script.write_text(mutation.source)
        arguments = [command, "run", "--device", "virtual", "--no-check", "-o", str(trace)]
        devices = re.search(r"# ?@ gpus: (\d+)|--device-count (\d+)", mutation.source)
        if devices:
            arguments += ["--device-count", devices[1] or devices[2]]
        try:
            subprocess.run(
                [*arguments, str(script)], capture_output=True, timeout=120, check=False, cwd=folder
            )
            checked = subprocess.run(
                [command, "check", "--output-format", "json", str(trace)],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            report = json.loads(checked.stdout)
        except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
            return Outcome(mutation, (), f"no report: {type(error).__name__}")
    findings = []
    for finding in report["findings"]:
        places = [finding.get(part) for part in ("first", "free", "second")]
        lines = [str(place["stack"][0]["line"]) for place in places if place and place["stack"]]
        findings.append(f"{finding['rule']} {' -> '.join(lines)}")
    return Outcome(mutation, tuple(findings), None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="+", type=Path, help="scripts, or folders of scripts")
    parser.add_argument("--streamsan", default=str(Path(sys.prefix, "bin", "streamsan")))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    scripts = []
    for path in arguments.scripts:
        scripts += sorted(path.glob("*.py")) if path.is_dir() else [path]
    work = [mutation for script in scripts for mutation in mutations(script)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = list(pool.map(lambda mutation: run(arguments.streamsan, mutation), work))
    print("| script | line | left out | findings (lines) |\n| --- | --- | --- | --- |")
    for outcome in outcomes:
        mutation = outcome.mutation
        said = "; ".join(outcome.findings) or outcome.problem
        if not said:
            said = "none"
        name = f"{mutation.script.parent.name}/{mutation.script.name}"
        print(f"| {name} | {mutation.line} | `{mutation.call}` | {said} |")
    with_findings = sum(bool(outcome.findings) for outcome in outcomes)
    print(
        f"\n{len(outcomes)} calls left out in {len(scripts)} scripts, {with_findings} gave findings.",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
