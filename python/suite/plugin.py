"""Runs tests of zae-limiter on zae_limiter_rs: a plugin for pytest.

`zae_limiter` and its modules are replaced by the modules of `zae_limiter_rs`. moto is a server instead of a patch of botocore,
since the core is not Python. A test is left out if it uses what is not public: names with an underscore, mocks of the
inside, or modules and methods that the package does not export.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import os
import sys
import textwrap
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ContextDecorator
from pathlib import Path
from types import ModuleType
from typing import Any

import moto
import pytest
import zae_limiter_rs
from endpoint import moto_server

# Pure functions that make keys. The tests compare what is stored with them.
OWN_MODULES = {"zae_limiter.schema": "src/zae_limiter/schema.py"}
# The same name in both packages.
SHARED_PRIVATE_NAMES = {"_repository", "_stack_options"}
MOCKS = {"patch", "Mock", "MagicMock", "AsyncMock", "PropertyMock", "mocker"}
RESULTS = "ZAE_SUITE_RESULTS"


class LeftOut(pytest.skip.Exception):  # type: ignore[misc]
    """The test uses what is not public."""


class NotPublic:
    """Stands for a name that zae_limiter_rs does not have."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise LeftOut(f"not public: {self.__name__}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise LeftOut(f"not public: {self.__name__}.{name}")


class Replacement(ModuleType):
    """A module of zae_limiter with the names of zae_limiter_rs."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        _, _, module = self.__name__.partition(".")
        for place in (f"zae_limiter_rs.{module}" if module else "zae_limiter_rs", "zae_limiter_rs"):
            try:
                return getattr(importlib.import_module(place), name)
            except (ImportError, AttributeError):
                continue
        return NotPublic(f"{self.__name__}.{name}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds zae_limiter."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if name.split(".")[0] not in ("zae_limiter", "zae_limiter_aggregator"):
            return None
        if name in OWN_MODULES:
            return importlib.util.spec_from_file_location(name, OWN_MODULES[name])
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Replacement(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class MockAws(ContextDecorator):
    """moto's `mock_aws`, on the server."""

    url = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> MockAws:
        reset = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")
        with urllib.request.urlopen(reset):
            pass
        self.before = os.environ.get("AWS_ENDPOINT_URL")
        os.environ["AWS_ENDPOINT_URL"] = self.url
        return self

    def __exit__(self, *_: object) -> None:
        if self.before is None:
            del os.environ["AWS_ENDPOINT_URL"]
        else:
            os.environ["AWS_ENDPOINT_URL"] = self.before


# At once: the tests' own configuration imports both before pytest is configured.
sys.meta_path.insert(0, Finder())
moto.mock_aws = MockAws  # type: ignore[assignment, misc]


def pytest_configure(config: pytest.Config) -> None:
    server = moto_server()
    MockAws.url = server.__enter__()
    config.add_cleanup(lambda: server.__exit__(None, None, None))
    config.pluginmanager.register(Results(), "zae-suite-results")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = not_public(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def not_public(item: pytest.Item) -> str | None:
    """What the test uses that is not public; nothing for one that can run."""
    function: Any = getattr(item, "function", None)
    if function is None:
        return None
    names = vars(sys.modules[function.__module__])
    sources = [function, *own_fixtures(item)]
    helpers: set[str] = set()
    while sources:
        tree = ast.parse(textwrap.dedent(inspect.getsource(sources.pop())))
        for node in ast.walk(tree):
            found = used(node, names)
            if found:
                return found
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if own and node.attr not in helpers and hasattr(getattr(item, "cls", None), node.attr):  # type: ignore[attr-defined]
                helpers.add(node.attr)  # type: ignore[attr-defined]
                helper = inspect.unwrap(getattr(item.cls, node.attr))  # type: ignore[attr-defined]
                if inspect.isfunction(helper):
                    sources.append(helper)
    return None


def own_fixtures(item: pytest.Item) -> Iterator[Any]:
    """The fixtures of the test that its own file defines."""
    info = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info else ():
        function = inspect.unwrap(definitions[-1].func)
        if function.__module__ == item.function.__module__:  # type: ignore[attr-defined]
            yield function


def used(node: ast.AST, names: dict[str, Any]) -> str | None:
    """What this part of the source uses that is not public."""
    if isinstance(node, ast.Name):
        if node.id in MOCKS:
            return "mocks the inside"
        if isinstance(names.get(node.id), NotPublic):
            return f"not public: {names[node.id].__name__}"
    if isinstance(node, ast.arg) and node.arg in MOCKS:
        return "mocks the inside"
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("zae_limiter"):
        module = importlib.import_module(node.module or "")
        for alias in node.names:
            if isinstance(getattr(module, alias.name, None), NotPublic):
                return f"not public: {node.module}.{alias.name}"
    if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if not own and node.attr not in SHARED_PRIVATE_NAMES:
            return f"private name: {node.attr}"
    return None


class Results:
    """Writes the outcome of every test into a file."""

    def __init__(self) -> None:
        self.outcomes: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "skipped":
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.outcomes[report.nodeid] = ("left out", text.removeprefix("Skipped: "))
        elif report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr)
            self.outcomes[report.nodeid] = ("failed", text[:2000])
        else:
            self.outcomes.setdefault(report.nodeid, ("passed", ""))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            Path(os.environ[RESULTS]).write_text(json.dumps(self.outcomes, indent=1))
