"""What holds for all tests."""

import os

# The sessions of pytest that tests start are no workers of this one.
for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
    del os.environ[name]
