"""Before which line code goes that is to run before a call."""

import sys

import pytest

pytest.importorskip("torch")

from streamsan.torch.statements import HEADER, LATER, ONCE, REPEATED, Position, placement

# Each call of `mark` has the line and the reach that are expected; no second argument: its own line.
SOURCE = """\
x = max(
    1,
    mark("argument", (1, ONCE)),
)
if not mark("if"):
    pass
elif not mark("elif", (5, ONCE)):
    pass
elif mark("second elif", (5, ONCE)):
    pass
for item in mark("iterated once", None, iter([1])):
    mark("body")
for item in Items((13, HEADER)):
    pass
turns = 0
while mark("condition", (16, HEADER), turns < 2):
    turns += 1
if turns: mark("same line")
if not turns:
    pass
else: mark("after else", (19, ONCE))
for item in [1]: mark("loop of one line", (22, HEADER))
turns = 1; mark("second statement")
callbacks = [
    lambda: mark("lambda", (24, LATER)),
]
callbacks[0]()
later = (mark("generator", (28, LATER)) for item in [1])
list(
    later
)
items = [
    mark("element", COMPREHENSION)
    for item in mark("its source", (32, ONCE), [1])
]
@mark("decorator", None, lambda function: function)
@(
    mark("second decorator", (36, ONCE), lambda function: function)
)
def function(
    default=mark("default", (36, ONCE)),
):
    pass
with open(
    mark("opened", (44, ONCE), __file__)
):
    mark("inside")
try:
    raise ValueError
except mark("except", (48, HEADER), ValueError):
    pass
x = 1 + \\
    mark("continued", (52, ONCE), 1)
text = \"\"\"
%s
\"\"\" % mark("after a string", (54, ONCE))
def short(): mark("body of a function", (57, LATER))
short()
try: x = 1
finally: mark("finally", (59, HEADER))
try:
    raise ValueError
except ValueError: mark("body of except", (61, HEADER))
for item in [1]: pass
else: mark("else of a loop", (64, HEADER))
for item in range(
    1
): mark("loop with a header of lines", (66, HEADER))
print(
    end=""
); mark("after a statement of lines", (69, ONCE))
with Leaving((72, HEADER)):
    pass
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="this Python does not know columns")
def test_places(tmp_path):
    file = tmp_path / "code.py"
    file.write_text(SOURCE)
    seen = {}

    def look(frame, what, expected):
        positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        line, end_line, column, end_column = positions
        position = Position(line, column + 1, end_line, end_column + 1)
        found = placement(frame.f_code, frame.f_lasti, str(file), position)
        seen[what] = found
        assert found == expected, what

    def mark(what, expected=None, value=True):
        look(sys._getframe(1), what, expected)
        return value

    class Items:
        def __init__(self, expected):
            self.expected = expected

        def __iter__(self):
            return self

        def __next__(self):
            look(sys._getframe(1), "next", self.expected)
            raise StopIteration

    class Leaving:
        def __init__(self, expected):
            self.expected = expected

        def __enter__(self):
            return self

        def __exit__(self, *error):
            look(sys._getframe(1), "leaving", self.expected)

    comprehension = (32, LATER) if sys.version_info < (3, 12) else (32, REPEATED)
    names = {
        "mark": mark,
        "Items": Items,
        "Leaving": Leaving,
        "COMPREHENSION": comprehension,
        "__file__": str(file),
    }
    names |= {"ONCE": ONCE, "HEADER": HEADER, "LATER": LATER}
    exec(compile(SOURCE, str(file), "exec"), names)
    assert len(seen) == SOURCE.count('mark("') + SOURCE.count("Items(") + SOURCE.count("Leaving(")


def test_without_columns(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("x = f(\n    1,\n    g(),\n)\nwhile g():\n    pass\n")
    code = compile("g()", str(file), "exec")
    assert placement(code, 0, str(file), Position(3, 0, 3, 0)) == (1, ONCE)
    assert placement(code, 0, str(file), Position(5, 0, 5, 0)) == (5, HEADER)
    assert placement(code, 0, str(file), Position(6, 0, 6, 0)) is None
