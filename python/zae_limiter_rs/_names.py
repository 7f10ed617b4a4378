"""The rules of names, checked before anything is sent."""

from __future__ import annotations

import re

DEFAULT_RESOURCE = "_default_"
MAX_IDENTIFIER_LENGTH = 256
MAX_NAME_LENGTH = 64
MAX_STACK_NAME_LENGTH = 55

_IDENTIFIER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-:@]*")
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.\-]*")
_RESOURCE = re.compile(r"[a-zA-Z][a-zA-Z0-9_.\-/]*")
_STACK = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


def _broken_rule(value: str, pattern: re.Pattern[str], longest: int, characters: str) -> str | None:
    if not value:
        return "cannot be empty"
    if len(value) > longest:
        return f"exceeds maximum length of {longest}"
    if "#" in value:
        return "cannot contain '#' (reserved delimiter)"
    return None if pattern.fullmatch(value) else characters


def validate_identifier(value: str, field_name: str) -> None:
    """Checks an entity id, a parent's id or a principal."""
    from .exceptions import InvalidIdentifierError

    rule = _broken_rule(
        value,
        _IDENTIFIER,
        MAX_IDENTIFIER_LENGTH,
        "must start with alphanumeric and contain only alphanumeric, underscore, hyphen, dot, colon, or @ characters",
    )
    if rule:
        raise InvalidIdentifierError(field_name, value, rule)


def validate_name(value: str, field_name: str) -> None:
    """Checks the name of a limit."""
    from .exceptions import InvalidNameError

    rule = _broken_rule(
        value,
        _NAME,
        MAX_NAME_LENGTH,
        "must start with a letter and contain only alphanumeric, underscore, hyphen, or dot characters",
    )
    if rule:
        raise InvalidNameError(field_name, value, rule)


def validate_resource(value: str, field_name: str = "resource") -> None:
    """Checks the name of a resource."""
    from .exceptions import InvalidNameError

    rule = _broken_rule(
        value,
        _RESOURCE,
        MAX_NAME_LENGTH,
        "must start with a letter and contain only alphanumeric, underscore, hyphen, dot, or slash characters",
    )
    if rule:
        raise InvalidNameError(field_name, value, rule)


def validate_stack_name(name: str) -> str:
    """Checks the name of a stack, which is the name of its table."""
    from .exceptions import ValidationError

    hints = {
        "_": "Contains underscore. Use hyphens instead (e.g., 'rate-limits' not 'rate_limits')",
        ".": "Contains period. Only alphanumeric characters and hyphens are allowed.",
        " ": "Contains spaces. Use hyphens instead (e.g., 'my-app' not 'my app')",
    }
    rule = "Name cannot be empty" if not name else None
    rule = rule or next((hint for character, hint in hints.items() if character in name), None)
    if not rule and not _STACK.fullmatch(name):
        rule = "Must start with a letter and contain only alphanumeric characters and hyphens."
    if not rule and len(name) > MAX_STACK_NAME_LENGTH:
        rule = f"Too long. Name exceeds {MAX_STACK_NAME_LENGTH} character limit (IAM role constraints)."
    if rule:
        raise ValidationError("name", name, rule)
    return name
