"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("zae-limiter-rs")
except PackageNotFoundError:
    __version__ = "0.0.0+unknown"
