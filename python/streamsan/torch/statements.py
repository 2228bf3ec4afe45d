"""Before which line code can be put that is to run before a position: a statement can have several lines.

Code cannot be put before each line of a file: `elif`, and the second line of a call, are within a statement.
And code before a loop does not run again in each turn of it, though what is in the loop's header does.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import Final, NamedTuple

from streamsan.torch.names import parse

# As the recorder knows them.
ONCE, REPEATED, HEADER, LATER = 0, 1, 2, 3

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LATER: Final = ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
# What the turns of a `for` do besides their body: ask for the next item and assign it.
_NEXT: Final = ("FOR_ITER", "GET_ANEXT", "SEND", "YIELD_FROM", "UNPACK", "STORE")


class Position(NamedTuple):
    """Where a call is. All are from 1; columns are in bytes, the last one excluded. 0 is not known."""

    line: int
    column: int
    end_line: int
    end_column: int

    def is_in(self, node: ast.AST) -> bool:
        """Whether it lies within a node.

        Example:
            >>> Position(1, 5, 1, 6).is_in(ast.parse("x = y").body[0])
            True
        """
        line, end_line = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if self.column == 0 or self.end_column == 0:
            return bool(line <= self.line <= end_line)
        start = (line, getattr(node, "col_offset", 0) + 1)
        end = (end_line, getattr(node, "end_col_offset", 0) + 1)
        return start <= (self.line, self.column) and (self.end_line, self.end_column) <= end


def placement(code: CodeType, instruction: int, file: str, position: Position) -> tuple[int, int] | None:
    """Returns the line before which code goes that is to run before the position, and how it is reached.

    It is reached `ONCE` from there, perhaps `REPEATED` in a comprehension, again in each turn of a loop as
    its `HEADER`, or `LATER`, when something calls it. `None`: once from its own line, or not known.

    Example:
        >>> placement(placement.__code__, 0, "no such file", Position(1, 1, 1, 2)) is None
        True
    """
    tree = parse_once(file)
    above = [] if tree is None else _statements(tree, position)
    if tree is None or not above:
        return None
    line, reach = _before(above, tree, file)
    if code.co_name in _LATER:
        reach = LATER
    elif reach == ONCE and _is_header(above[-1], code, instruction, position):
        reach = HEADER
    elif reach == ONCE and _is_repeated(above[-1], position):
        reach = REPEATED
    return None if (line, reach) == (position.line, ONCE) else (line, reach)


@functools.lru_cache(maxsize=64)
def parse_once(file: str) -> ast.Module | None:
    """Returns what a file says, as `parse` does, and remembers it.

    Example:
        >>> parse_once("no such file") is None
        True
    """
    return parse(file)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, with those of its `except` and `case`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _statements(tree: ast.Module, position: Position) -> list[ast.stmt]:
    """The statements around a position, the innermost one last."""
    found: list[ast.stmt] = []
    node: ast.AST | None = tree
    while node is not None:
        inside = (
            child
            for block in _blocks(node)
            for child in block
            if _first_line(child) <= position.line <= (child.end_lineno or 0)
        )
        candidates = list(inside)
        node = next((child for child in candidates if position.is_in(child)), None)
        if node is None:
            # A decorator lies before its statement.
            node = next((child for child in candidates if position.line < child.lineno), None)
        if node is not None:
            found.append(node)
    return found


def _before(above: list[ast.stmt], tree: ast.Module, file: str) -> tuple[int, int]:
    """The line of the innermost statement before which there can be another one, and the reach from there."""
    outer = list(above)
    statement = outer.pop()
    while True:
        line = _first_line(statement)
        text = linecache.getline(file, line).encode()[: statement.col_offset].decode(errors="replace").strip()
        parent = outer[-1] if outer else tree
        if not (text or _is_elif(statement, parent)):
            return line, ONCE
        # It shares the line with what is around it: `if ready: x.add_(1)`, or `a(); b()`.
        before = _neighbour(statement, parent) if text.endswith(";") else None
        if before is not None:
            statement = before
            continue
        if isinstance(parent, ast.Module):
            return line, ONCE
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _first_line(parent), LATER
        if _comes_after_others(statement, parent):
            return _first_line(parent), HEADER
        statement = outer.pop()


def _is_elif(statement: ast.stmt, parent: ast.AST) -> bool:
    """Whether this `if` is the `elif` of another."""
    return (
        isinstance(statement, ast.If)
        and isinstance(parent, ast.If)
        and statement in parent.orelse
        and statement.col_offset == parent.col_offset
    )


def _neighbour(statement: ast.stmt, parent: ast.AST) -> ast.stmt | None:
    """The statement before this one in its block."""
    for block in _blocks(parent):
        if statement in block[1:]:
            return block[block.index(statement) - 1]
    return None


def _comes_after_others(statement: ast.stmt, parent: ast.AST) -> bool:
    """Whether other operations of the parent are done between its begin and this statement of it.

    Of a loop those are the turns before, of `else`, `except` and `finally` the body.
    """
    if isinstance(parent, _LOOPS):
        return True
    return isinstance(parent, ast.Try) and statement not in parent.body


def _is_header(statement: ast.stmt, code: CodeType, instruction: int, position: Position) -> bool:
    """Whether a position of this statement, and of none inside of it, comes after what is inside of it."""
    if isinstance(statement, ast.While):
        return True
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        is_next = _operation(code, instruction).startswith(_NEXT)
        return is_next or (position.column > 0 and not position.is_in(statement.iter))
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return _is_behind(statement.body, code, instruction)
    # What a `case` or an `except` tests.
    if isinstance(statement, ast.Match):
        return not position.is_in(statement.subject)
    return isinstance(statement, ast.Try)


def _is_behind(body: list[ast.stmt], code: CodeType, instruction: int) -> bool:
    """Whether an instruction comes after the first one of a block, as the end of a `with` does.

    A block on the line of its `with` is not told from it.
    """
    first, last = body[0].lineno, body[-1].end_lineno or 0
    lines = (start for start, _, line in code.co_lines() if line is not None and first <= line <= last)
    return next(lines, instruction) < instruction


def _operation(code: CodeType, instruction: int) -> str:
    known = code.co_code
    return dis.opname[known[instruction]] if 0 <= instruction < len(known) else ""


def _is_repeated(statement: ast.stmt, position: Position) -> bool:
    """Whether a position is within a comprehension (which has a frame of its own before Python 3.12)."""
    if position.column == 0 or any(True for block in _blocks(statement) if block):
        return False
    parts = (node for node in ast.walk(statement) if isinstance(node, _COMPREHENSIONS))
    return any(position.is_in(node) and not position.is_in(node.generators[0].iter) for node in parts)
