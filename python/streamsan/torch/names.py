"""Names from code: what a statement assigns its value to."""

from __future__ import annotations

import ast
import functools
import linecache

_LARGEST_FILE = 20_000

# What may call something that allocates.
_MAKERS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Await)


def parse(file: str) -> ast.Module | None:
    """Returns what the source file says, if there is one that can be read and is not huge."""
    lines = linecache.getlines(file)
    if not lines or len(lines) > _LARGEST_FILE:
        return None
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=256)
def _assignments(file: str) -> dict[tuple[int, int], list[tuple[ast.expr, str]]]:
    """Returns the assigned values of a file with their targets, by the lines on which they lie."""
    tree = parse(file)
    if tree is None:
        return {}
    found: dict[tuple[int, int], list[tuple[ast.expr, str]]] = {}
    for node in ast.walk(tree):
        for target, value in _pairs(node):
            name = target_name(target)
            if name is not None:
                for part, part_name in _parts(value, name):
                    place = (part.lineno, part.end_lineno or part.lineno)
                    found.setdefault(place, []).append((part, part_name))
    return found


@functools.lru_cache(maxsize=256)
def _makers(file: str) -> dict[int, int]:
    """Returns for each line how many expressions, and changes in place, begin there that make a value."""
    counts: dict[int, int] = {}
    for node in ast.walk(parse(file) or ast.Module([], [])):
        if isinstance(node, (*_MAKERS, ast.AugAssign)) and not isinstance(
            getattr(node, "ctx", None), (ast.Store, ast.Del)
        ):
            counts[node.lineno] = counts.get(node.lineno, 0) + 1
    return counts


def _pairs(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            return list(zip(target.elts, value.elts, strict=False))
        return [(target, value)]
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
        return [(node.target, node.value)]
    if isinstance(node, ast.NamedExpr):
        return [(node.target, node.value)]
    return []


def _parts(value: ast.expr, name: str) -> list[tuple[ast.expr, str]]:
    """Returns the value, and the elements of a list or dictionary that is written out."""
    parts = [(value, name)]
    if isinstance(value, (ast.List, ast.Tuple)) and not any(isinstance(e, ast.Starred) for e in value.elts):
        parts += [(element, f"{name}[{index}]") for index, element in enumerate(value.elts)]
    elif isinstance(value, ast.Dict):
        for key, element in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                parts.append((element, f"{name}[{code_of_key(key.value)}]"))
    return parts


def code_of_key(key: str | int) -> str:
    """Returns a key as code, with the quotes that most people write."""
    plain = isinstance(key, str) and key.isprintable() and '"' not in key and "\\" not in key
    return f'"{key}"' if plain else repr(key)


def target_name(target: ast.expr) -> str | None:
    """Returns the target as code if it is short: a name, an attribute, or an element."""
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        text = ast.unparse(target)
        return text if len(text) <= 40 else None
    return None


def assigned_name(file: str, line: int, end_line: int, column: int, end_column: int) -> str | None:
    """Returns what the value at this position is assigned to, if the whole of it is.

    Columns are in bytes, from 1, the last one excluded; 0 if they are not known (Python 3.10); then nothing
    else on its lines may make a value.
    """
    values = _assignments(file).get((line, end_line), [])
    if column == 0:
        alone = [name for value, name in values if isinstance(value, _MAKERS)]
        makers = sum(_makers(file).get(number, 0) for number in range(line, end_line + 1))
        return alone[0] if len(values) == len(alone) == makers == 1 else None
    for value, name in values:
        if value.col_offset + 1 == column and (value.end_col_offset or 0) + 1 == end_column:
            return name
    return None
