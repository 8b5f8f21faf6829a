"""Narrowing of JSON values for the type checkers: what `isinstance` alone leaves unknown."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object; its keys are text by JSON's own rule."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is a list."""
    return isinstance(value, list)
