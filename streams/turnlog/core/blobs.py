"""Blobs: large parts outside their event, as slices that stand before it in the log.

A content part, or any JSON value, that is too large for an event becomes a *reference*: an object
of type `blob` with digest, size, media type and a preview. Its bytes go into `blob_part` events.
What is above the limit of a blob is not kept: the reference says so, with the digest of the whole.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, TypeGuard

import orjson

from turnlog.core.errors import SchemaError
from turnlog.core.frames import MAX_BLOB_BYTES, digest_of
from turnlog.core.shapes import is_object

Json = Any
Data = dict[str, Any]

SLICE_BYTES = 360 * 1024
"""A slice is 480 KiB in base64, so that a frame holds one and has room."""
PREVIEW_CHARACTERS = 1_000
MAX_REST_BYTES = 64 * 1024
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
BYTES = "application/octet-stream"


def externalise(part: Data) -> tuple[list[Data], Data]:
    """A content part as blob parts and what stands in its place.

    Gives the data of the `blob_part` events, which go before the event, and the part. A tool call
    keeps its id and name, and only its arguments move; an image moves its decoded bytes. `resolve`
    gives the part back.
    """
    if part["type"] == "tool_call":
        slices, reference = externalise_value(part.get("args"))
        return slices, {**part, "args": reference}
    media_type: Json
    text, data = part.get("text"), part.get("data")
    if isinstance(text, str):
        rest = {name: value for name, value in part.items() if name != "text"}
        body, media_type, preview = text.encode(), TEXT, text[:PREVIEW_CHARACTERS]
    elif part["type"] == "image" and (decoded := _decoded(data)) is not None:
        rest = {name: value for name, value in part.items() if name != "data"}
        body, media_type, preview = decoded, part.get("media_type"), ""
    else:
        return externalise_value(part)
    if len(orjson.dumps(rest)) > MAX_REST_BYTES:  # what is large is something else
        return externalise_value(part)
    slices, reference = _store(body, media_type, preview)
    return slices, {**reference, "part": rest}


def externalise_value(value: Json) -> tuple[list[Data], Data]:
    """Any JSON value as blob parts and a reference."""
    if isinstance(value, str):
        return _store(value.encode(), TEXT, value[:PREVIEW_CHARACTERS])
    body = orjson.dumps(value)
    preview = body[: 4 * PREVIEW_CHARACTERS].decode(errors="ignore")[:PREVIEW_CHARACTERS]
    return _store(body, JSON, preview)


def is_reference(value: object) -> TypeGuard[Data]:
    """Whether a value stands for a blob."""
    return is_object(value) and value.get("type") == "blob" and isinstance(value.get("digest"), str)


def resolve(part: Data, fetch: Callable[[str], bytes | None]) -> Data:
    """A part as it was before `externalise`; what is no reference is given back as it is.

    `fetch` gives the bytes of a blob by its digest, or None. A part whose blob is not to be had,
    or was never kept, is given back as it is, with its preview. Raises SchemaError where the bytes
    are not those that the digest names.
    """
    if part["type"] == "tool_call":
        reference = part.get("args")
        if not is_reference(reference):
            return part
        value = resolve_value(reference, fetch)
        return part if value is reference else {**part, "args": value}
    if not is_reference(part):
        return part
    rest = part.get("part")
    if not is_object(rest):
        value = resolve_value(part, fetch)
        return value if is_object(value) else part
    body = _fetched(part, fetch)
    if body is None:
        return part
    if rest.get("type") == "image":
        return {**rest, "data": base64.b64encode(body).decode()}
    return {**rest, "text": body.decode()}


def resolve_value(reference: Data, fetch: Callable[[str], bytes | None]) -> Json:
    """The value behind a reference, or the reference where its bytes are not to be had."""
    body = _fetched(reference, fetch)
    if body is None:
        return reference
    return orjson.loads(body) if reference.get("media_type") == JSON else body.decode()


def _store(body: bytes, media_type: Json, preview: str) -> tuple[list[Data], Data]:
    digest = digest_of(body)
    reference: Data = {
        "type": "blob",
        "digest": digest,
        "size": len(body),
        "media_type": media_type if isinstance(media_type, str) else BYTES,
        "preview": preview,
    }
    if len(body) > MAX_BLOB_BYTES:
        return [], {**reference, "truncated": True}
    starts = range(0, len(body), SLICE_BYTES)
    slices: list[Data] = [
        {
            "digest": digest,
            "index": index,
            "of": len(starts),
            "bytes": base64.b64encode(body[start : start + SLICE_BYTES]).decode(),
        }
        for index, start in enumerate(starts)
    ]
    return slices, reference


def _decoded(data: Json) -> bytes | None:
    """The bytes of base64 text, where encoding them again gives the same text."""
    if not isinstance(data, str):
        return None
    try:
        body = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return body if base64.b64encode(body).decode() == data else None


def _fetched(reference: Data, fetch: Callable[[str], bytes | None]) -> bytes | None:
    if reference.get("truncated") is True:
        return None
    body = fetch(reference["digest"])
    if body is not None and digest_of(body) != reference["digest"]:
        raise SchemaError(
            f"blob {reference['digest']}: its bytes have another digest, so they are not what was"
            " stored; run turnlog fsck on the log they came from"
        )
    return body
