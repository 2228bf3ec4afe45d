"""Traces of small stream programs, made without torch."""

from pathlib import Path

BAD = "streams default, side\nbuffer x 4MiB\ndefault: write x\nside: read x\n"
FIXED = BAD.replace("side: read", "default: record e\nside: wait e\nside: read")
EMPTY = "streams default, side\nbuffer x 4MiB\n"


def write(folder: Path, name: str, program: str) -> Path:
    """Writes the program and its trace, as `bad.sim` and `bad.sstrace`."""
    from streamsan import _core

    (folder / f"{name}.sim").write_text(program)
    trace = folder / f"{name}.sstrace"
    _core.write_program(f"{name}.sim", program, str(trace))
    return trace
