"""How long an expression for a stream keeps its meaning: what the code of its file says.

An expression is looked up when its line is reached for the first time. The next time a parameter, the
variable of a loop or an attribute of another object may be another stream.

It can miss: code of other files and `setattr`, `exec` and the like that bind a name once more.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from types import CodeType
from typing import Final

from streamsan.torch.names import parse

# As the recorder knows them.
MOMENTARY, CREATED, LASTING = 0, 1, 2

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES: Final = (ast.Module, ast.ClassDef, ast.Lambda, *_FUNCTIONS, *_COMPREHENSIONS)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_CHANGES: Final = frozenset(("pop", "popleft", "insert", "remove", "reverse", "sort", "clear", "rotate"))
_EXPRESSION: Final = re.compile(r"(?P<root>\w+)(\.(?P<attribute>\w+))?(\.(?P<inner>\w+))?(\[.*\])?")
_DEEPEST: Final = 8


def binding(code: CodeType, file: str, expression: str) -> int:
    """Says how long the expression keeps its meaning in frames of this code.

    Returns:
        `LASTING` if it is bound once in the life of the program. `CREATED` if only the statement binds it
        that makes the stream: then it is right as long as that statement has made one stream. Else
        `MOMENTARY`.

    Example:
        >>> binding((lambda side: side).__code__, __file__, "side") == MOMENTARY
        True
    """
    parts = _EXPRESSION.fullmatch(expression)
    source = _source(file)
    if parts is None or source is None:
        return MOMENTARY
    outer = source.binding(code, parts["root"], parts["attribute"])
    if parts["inner"] is None:
        return outer
    return LASTING if outer == LASTING and source.binds_once(parts["inner"]) else MOMENTARY


@functools.lru_cache(maxsize=256)
def _source(file: str) -> _Source | None:
    tree = parse(file)
    return None if tree is None else _Source(tree)


class _Source:
    """What is bound where in one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents: dict[ast.AST, ast.AST] = {}
        self._functions: dict[tuple[str, int], ast.AST] = {}
        # What binds a name in a scope, an attribute anywhere; uses of both.
        self._bound: dict[tuple[ast.AST, str], list[ast.AST]] = {}
        self._attributes: dict[str, list[ast.AST]] = {}
        self._used: dict[str, list[ast.AST]] = {}
        # Names that are bound from other scopes, and what is changed in place.
        self._changed: set[str] = set()
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        for node in ast.walk(tree):
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, _FUNCTIONS):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            self._functions[node.name, first] = node
        for name in _names_bound_by(node):
            self._bound.setdefault((self._scope(node), name), []).append(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._used.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Attribute):
            kept = self._used if isinstance(node.ctx, ast.Load) else self._attributes
            kept.setdefault(node.attr, []).append(node)
            if node.attr in _CHANGES:
                self._changed.update(_last_name(node.value))
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            self._changed.update(_last_name(node.value))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self._changed.update(node.names)

    def binding(self, code: CodeType, root: str, attribute: str | None) -> int:
        scope = self._scope_of(code, root)
        if scope is None or not {root, attribute}.isdisjoint(self._changed):
            return MOMENTARY
        parameter = root in parameters(code)
        bound = self._bound.get((scope, root), [])
        once = not parameter and len(bound) == 1 and not self._in_loop(bound[0])
        # A parameter is bound by the call.
        lasting = (once or (parameter and not bound)) and self._runs_once(scope)
        lasting = lasting or (parameter and not bound and self._is_same_in_all_calls(scope, root, 0))
        if attribute is None:
            if lasting:
                return LASTING
            return CREATED if once and self._makes_stream(bound[0]) else MOMENTARY
        if not self.binds_once(attribute):
            return MOMENTARY
        stores = self._stores(attribute)
        owner = self._scope(stores[0])
        if isinstance(stores[0], ast.Name):
            known = lasting or self._is_self(code, root, owner)
            return LASTING if known and self._runs_once(owner) else MOMENTARY
        if lasting or (parameter and self._is_only_instance(code, root)):
            return LASTING
        return CREATED if self._makes_stream(stores[0]) else MOMENTARY

    def binds_once(self, attribute: str) -> bool:
        """Whether an attribute has this name once in the file, and is bound outside of loops."""
        stores = self._stores(attribute)
        return len(stores) == 1 and not self._in_loop(stores[0]) and attribute not in self._changed

    def _stores(self, attribute: str) -> list[ast.AST]:
        """What binds an attribute: of an object, or in the body of a class."""
        of_classes = (
            node
            for (scope, name), nodes in self._bound.items()
            if name == attribute and isinstance(scope, ast.ClassDef)
            for node in nodes
        )
        return [*self._attributes.get(attribute, []), *of_classes]

    def _is_self(self, code: CodeType, root: str, kind: ast.AST) -> bool:
        """Whether a parameter is `self` of this class."""
        function = self._functions.get((code.co_name, code.co_firstlineno))
        return function is not None and code.co_varnames[:1] == (root,) and self._scope(function) is kind

    def _scope_of(self, code: CodeType, name: str) -> ast.AST | None:
        """The scope that binds a name which a frame sees."""
        if not code.co_flags & inspect.CO_OPTIMIZED:
            return self._tree if code.co_name == "<module>" else None
        scope = self._functions.get((code.co_name, code.co_firstlineno))
        if scope is None:
            return None
        if name in code.co_varnames or name in code.co_cellvars:
            return scope
        if name not in code.co_freevars:
            return self._tree
        while not isinstance(scope, ast.Module):
            scope = self._scope(scope)
            if (scope, name) in self._bound:
                return scope
        return None

    def _scope(self, node: ast.AST) -> ast.AST:
        return next(parent for parent in self._above(node) if isinstance(parent, _SCOPES))

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node
        yield self._tree

    def _in_loop(self, node: ast.AST) -> bool:
        """Whether a node is done more than once each time that its scope is run."""
        for parent in self._above(node):
            if isinstance(parent, (*_LOOPS, *_COMPREHENSIONS)):
                return True
            if isinstance(parent, _SCOPES):
                return False
        return False

    def _runs_once(self, scope: ast.AST, depth: int = 0) -> bool:
        if isinstance(scope, ast.Module):
            return True
        if not isinstance(scope, (*_FUNCTIONS, ast.ClassDef)) or scope.decorator_list or depth > _DEEPEST:
            return False
        if isinstance(scope, ast.ClassDef):
            return not self._in_loop(scope) and self._runs_once(self._scope(scope), depth + 1)
        if scope.name == "__init__":
            return self._is_made_once(self._scope(scope), depth + 1)
        return self._is_called_once(scope.name, depth)

    def _is_called_once(self, name: str, depth: int) -> bool:
        uses = self._used.get(name, [])
        if len(uses) != 1 or self._in_loop(uses[0]):
            return False
        call = self._parents[uses[0]]
        is_call = isinstance(call, ast.Call) and call.func is uses[0]
        return is_call and self._runs_once(self._scope(call), depth + 1)

    def _is_same_in_all_calls(self, function: ast.AST, parameter: str, depth: int) -> bool:
        """Whether all calls of a function pass the same lasting variable for a parameter."""
        if not isinstance(function, _FUNCTIONS) or function.decorator_list or depth > _DEEPEST:
            return False
        scope = self._scope(function)
        if isinstance(scope, ast.ClassDef) or len(self._bound.get((scope, function.name), [])) != 1:
            return False
        uses = self._used.get(function.name, [])
        passed = {self._passed(use, function, parameter, depth) for use in uses}
        return len(passed) == 1 and None not in passed

    def _passed(
        self, use: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str, depth: int
    ) -> ast.AST | None:
        """What binds the variable that a call passes for a parameter."""
        call = self._parents[use]
        if not isinstance(use, ast.Name) or not isinstance(call, ast.Call) or call.func is not use:
            return None
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        positional = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        values = dict(zip(positional, call.args, strict=False))
        values.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg})
        value = values.get(parameter)
        return self._lasting(self._scope(call), value.id, depth + 1) if isinstance(value, ast.Name) else None

    def _lasting(self, scope: ast.AST, name: str, depth: int) -> ast.AST | None:
        """What binds a variable that a scope sees, if that happens once in the life of the program."""
        if name in self._changed:
            return None
        while (scope, name) not in self._bound and name not in _parameters_of(scope):
            if isinstance(scope, ast.Module):
                return None
            scope = self._scope(scope)
        bound = self._bound.get((scope, name), [])
        if name in _parameters_of(scope):
            same = not bound and self._is_same_in_all_calls(scope, name, depth)
            return _parameters_of(scope)[name] if same else None
        once = len(bound) == 1 and not self._in_loop(bound[0])
        return bound[0] if once and self._runs_once(scope) else None

    def _is_made_once(self, kind: ast.AST, depth: int) -> bool:
        return isinstance(kind, ast.ClassDef) and self._is_called_once(kind.name, depth)

    def _is_only_instance(self, code: CodeType, root: str) -> bool:
        """Whether a parameter is `self` of a class of which there is one object."""
        function = self._functions.get((code.co_name, code.co_firstlineno))
        if function is None or code.co_varnames[:1] != (root,):
            return False
        return self._is_made_once(self._scope(function), 0)

    def _makes_stream(self, target: ast.AST) -> bool:
        """Whether a target is given what a call of a class of streams returns, alone or pair by pair."""
        parent = self._parents[target]
        value: ast.AST | None = None
        if isinstance(parent, (ast.Tuple, ast.List)):
            statement = self._parents[parent]
            values = getattr(statement, "value", None)
            if isinstance(values, (ast.Tuple, ast.List)) and len(values.elts) == len(parent.elts):
                value = next(
                    value for one, value in zip(parent.elts, values.elts, strict=True) if one is target
                )
        elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            value = parent.value
        return isinstance(value, ast.Call) and any(name.endswith("Stream") for name in _last_name(value.func))


def parameters(code: CodeType) -> tuple[str, ...]:
    """Returns the names of the parameters of a function.

    Example:
        >>> parameters((lambda side, *more: side).__code__)
        ('side', 'more')
    """
    variadic = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + variadic]


def _parameters_of(scope: ast.AST) -> dict[str, ast.arg]:
    if not isinstance(scope, (*_FUNCTIONS, ast.Lambda)):
        return {}
    kinds = scope.args
    every = (*kinds.posonlyargs, *kinds.args, kinds.vararg, *kinds.kwonlyargs, kinds.kwarg)
    return {argument.arg: argument for argument in every if argument is not None}


def _names_bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        if node.name is not None:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest


def _last_name(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
