"""Names that statements give to their values."""

import ast

import pytest

pytest.importorskip("torch")

from streamsan.torch.names import assigned_name


@pytest.fixture
def place(tmp_path):
    count = 0

    def find(source, expression, columns=True):
        """The name at the position of the last expression with this text."""
        nonlocal count
        count += 1
        file = tmp_path / f"code{count}.py"
        file.write_text(source)
        nodes = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.expr) and ast.get_source_segment(source, node) == expression
        ]
        node = nodes[-1]
        start, end = (node.col_offset + 1, node.end_col_offset + 1) if columns else (0, 0)
        return assigned_name(str(file), node.lineno, node.end_lineno, start, end)

    return find


@pytest.mark.parametrize(
    ("source", "expression", "name"),
    [
        ("x = f()", "f()", "x"),
        ("self.side = torch.cuda.Stream()", "torch.cuda.Stream()", "self.side"),
        ("buffers[i] = f()", "f()", "buffers[i]"),
        ("x: int = f()", "f()", "x"),
        ("x += f()", "f()", "x"),
        ("if (x := f()): pass", "f()", "x"),
        ("a, b = f(), g()", "g()", "b"),
        ("x = (\n    f(\n        1\n    )\n)", "f(\n        1\n    )", "x"),
        ("größe = f(); y = g()", "g()", "y"),
    ],
)
def test_the_whole_value_is_named(place, source, expression, name):
    assert place(source, expression) == name


@pytest.mark.parametrize(
    ("source", "expression"),
    [
        ("x = f() + 1", "f()"),
        ("x = g(f())", "f()"),
        ("f()", "f()"),
        ("a, b = f()", "f()"),
        ("return_ = [f() for _ in y]", "f()"),
    ],
)
def test_parts_of_a_value_are_not(place, source, expression):
    assert place(source, expression) is None


def test_without_columns_nothing_else_may_make_a_value(place):
    assert place("x = f()", "f()", columns=False) == "x"
    assert place("self.x[0] = torch.cuda.Stream(device=0)", "torch.cuda.Stream(device=0)", columns=False)
    assert place("x = a + b", "a + b", columns=False) == "x"
    for source, expression in [
        ("x = f(); y = g()", "g()"),
        ("x = f(g())", "f(g())"),
        ("x = f() + 1", "f() + 1"),
        ("x = [f() for _ in y]", "[f() for _ in y]"),
        ("x = [f() for _ in y]", "f()"),
        ("x = [f(), f()]", "f()"),
        ("x = {1: f()}", "f()"),
        ("y.copy_(z); x = f()", "f()"),
        ("y += 1; x = f()", "f()"),
        ("with s(): x = f()", "f()"),
    ]:
        assert place(source, expression, columns=False) is None, source


def test_a_file_that_is_not_there_gives_no_name():
    assert assigned_name("/nowhere/at/all.py", 1, 1, 1, 5) is None
