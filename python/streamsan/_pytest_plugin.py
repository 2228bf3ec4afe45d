"""The pytest plugin: `pytest --streamsan` records each test, on the virtual device or a GPU, and checks it.

Each pytest run of the environment loads this file. It only adds options and markers; all else, the native
module too, is loaded when streamsan is turned on.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Final

import pytest

_DEVICES: Final = ("auto", "virtual", "cuda")

# Why a run that a setting has turned on is not recorded.
_OBSTACLE: Final = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options and the settings."""
    group = parser.getgroup("streamsan", "hazards between CUDA streams")
    group.addoption(
        "--streamsan",
        action="store_true",
        help="record each test on the virtual device (no GPU needed), and fail tests with hazards",
    )
    group.addoption(
        "--streamsan-device",
        choices=_DEVICES,
        help="where tests are recorded: on the virtual device (default), on a GPU (cuda),"
        " or on a GPU if there is one (auto)",
    )
    group.addoption(
        "--streamsan-report",
        metavar="DIR",
        help="write HTML, SARIF and the trace of each test with hazards to this folder; implies --streamsan",
    )
    group.addoption(
        "--streamsan-baseline",
        metavar="FILE",
        help="known findings, as `streamsan check --write-baseline` writes them",
    )
    parser.addini("streamsan", "check each run for hazards between CUDA streams", type="bool", default=False)
    parser.addini("streamsan_device", "what --streamsan-device is if it is not given", default="virtual")
    parser.addini(
        "streamsan_error_on_warning", "warnings of streamsan fail a test too", type="bool", default=False
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Starts pytest again, once, so that the device library is preloaded. Nobody has imported torch yet."""
    options = early_config.known_args_namespace
    asked = bool(options.streamsan or options.streamsan_report)
    if (asked or early_config.getini("streamsan")) and not (options.help or options.version):
        from streamsan._testing.restart import CannotRecord, ensure_recorded

        try:
            ensure_recorded(early_config, device(early_config))
        except CannotRecord as error:
            # A setting is for all machines of a team, some of which cannot record. An option is for this one.
            if asked or error.is_usage:
                raise pytest.UsageError(str(error)) from None
            early_config.stash[_OBSTACLE] = str(error)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Says what the markers mean, and starts to check if streamsan is turned on."""
    config.addinivalue_line(
        "markers", 'streamsan(ignore=["SS102"]): hazards of these rules do not fail the test'
    )
    config.addinivalue_line(
        "markers", 'no_streamsan(reason="…"): the test is recorded, and its hazards are not reported'
    )
    if not is_on(config) or config.option.help or config.option.version:
        return
    obstacle = config.stash.get(_OBSTACLE, None)
    if obstacle is not None:
        first = obstacle.splitlines()[0].removeprefix("error: ")
        config.issue_config_time_warning(
            pytest.PytestWarning(f"`streamsan = true`, but nothing is checked: {first}"), stacklevel=2
        )
        return
    from streamsan._testing.plugin import register

    register(config)


def device(config: pytest.Config) -> str:
    """What the option, or else the setting, says of where tests are recorded.

    Raises:
        pytest.UsageError: if the setting is none of the choices.
    """
    chosen = str(config.known_args_namespace.streamsan_device or config.getini("streamsan_device"))
    if chosen not in _DEVICES:
        raise pytest.UsageError(f"streamsan_device = {chosen}: it is one of {', '.join(_DEVICES)}")
    return chosen


def is_on(config: pytest.Config) -> bool:
    """Whether an option or a setting asks for streamsan."""
    return bool(config.option.streamsan or config.option.streamsan_report or config.getini("streamsan"))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Says where the traces are: after a crash of the interpreter nobody else can."""
    if not config.pluginmanager.has_plugin("streamsan-session"):
        return None
    from streamsan._testing.restart import folder, recorded_on

    return f"streamsan: recorded on {recorded_on()}, traces in {os.fspath(folder())}"
