"""Prints the environment that `streamsan run` gives to programs, as JSON."""

from __future__ import annotations

import json
import os

if __name__ == "__main__":
    print(json.dumps(dict(os.environ)))
