"""Masking of secrets, before anything is published.

`Masker.mask` goes over the data of an event and replaces what has the shape of a secret by
`[masked:<kind>]`. Clean data, which is nearly all, costs one pass over its encoded bytes. Ids that
name other things, signatures and digests are left whole.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from turnlog.core.errors import UsageError
from turnlog.core.shapes import is_list, is_object
from turnlog.ingest.secret_shapes import (
    ASSIGNED,
    IN_URL,
    NAME_CORES,
    NO_SECRET_NAME,
    RARE,
    SECRET_NAME,
    SHAPES,
    SUSPECT,
    Shape,
)

Json = Any
Data = dict[str, Any]

_SUSPECT_TEXT = re.compile(SUSPECT)
_SUSPECT_BYTES = re.compile(SUSPECT.encode())
_URL_TEXT = re.compile(IN_URL)
_URL_BYTES = re.compile(IN_URL.encode())
_RARE_BYTES = tuple(hint.encode() for hint in RARE)
# fmt: off
_NAMES = frozenset(
    (
        "parent", "from", "attempt", "operation", "assistant_entry", "input_entry",
        "start_leaf", "dispatch", "replaces", "call_id", "parent_session", "spawned_by",
    )
)
# fmt: on
"""Fields of an event that name something: changing them would tear the tree."""
# fmt: off
_WHOLE = frozenset(
    (
        "signature", "encrypted_content", "thinkingSignature", "textSignature",
        "thoughtSignature", "digest",
    )
)
# fmt: on
_PLACEHOLDERS = re.compile(
    r"(?i)^(?:[x*.•-]+|null|none|true|false|undefined|string|str|text|password|passwd|secret|token"
    r"|changeme|example|redacted|hidden|required|optional|your[_-].*|my[_-]?(?:password|secret)"
    r"|<.*>|\[.*\]|\$.*|%.*|\{.*)$"
)
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_MAX = 32_768
_NAME_START = re.compile(r"[A-Za-z0-9_-]*$")
_UPPER = re.compile(r"[A-Z]+")
_DOTTED = re.compile(r"[A-Za-z_$][A-Za-z_$0-9]*(?:[.:]+[A-Za-z_$][A-Za-z_$0-9]*)+\Z")
_KEY_REST = re.compile(r"[A-Za-z0-9+/=]+(?=\s*$)|(?=\S*[A-Z0-9+/=])[A-Za-z0-9+/=]{4,}")
_KEY_FIRST = re.compile(r"(?:\\{1,8}[nr]|[\r\n]){1,4}(?=[a-z+/=]{0,40}[A-Z0-9])[A-Za-z0-9+/=]{8,}")
_KEY_BREAK = re.compile(r"(?:\\+[nr]|[\r\n])+")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]*")
_KEY_WORD = re.compile(r"[A-Za-z0-9+/=]+")
_KEY_GAP = 12
"""What may stand between two lines of a key: line ends, line numbers, a margin."""
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{30}")


class Masker:
    """Masks secrets of known shapes, and of `extra` ones: a regular expression by its kind.

    A pattern's group `secret` is masked, or its whole match. Raises UsageError for a pattern that
    is none. `counts` says how many were masked, by kind.
    """

    def __init__(self, extra: Mapping[str, str] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._extra = [_compiled(kind, pattern) for kind, pattern in (extra or {}).items()]
        self._shapes = (*SHAPES, *self._extra)

    def suspects(self, encoded: bytes) -> bool:
        """Whether the JSON of some data may hold a secret."""
        return (
            _SUSPECT_BYTES.search(encoded) is not None
            or (b"@" in encoded and _URL_BYTES.search(encoded) is not None)
            or any(hint in encoded for hint in _RARE_BYTES)
            or any(shape.pattern.search(encoded.decode()) for shape in self._extra)
        )

    def mask(self, data: Data) -> Data:
        """The data of an event without secrets; the same object where there are none."""
        changed = {
            name: masked
            for name, value in data.items()
            if name not in _NAMES and (masked := self._masked(value, name)) is not value
        }
        return {**data, **changed} if changed else data

    def mask_text(self, text: str) -> str:
        """A text without secrets."""
        if not (
            self._extra
            or _SUSPECT_TEXT.search(text)
            or ("@" in text and _URL_TEXT.search(text))
            or any(hint in text for hint in RARE)
        ):
            return text
        masked = self._mask_keys(text) if "-----BEGIN " in text else text
        masked = self._mask_tails(masked) if "-----END " in masked else masked
        for shape in self._shapes:
            if not shape.hints or any(hint in masked for hint in shape.hints):
                masked = shape.pattern.sub(partial(self._hide, shape.kind), masked)
        masked = self._mask_assignments(masked)
        return text if masked == text else masked

    def _masked(self, value: Json, name: str = "") -> Json:
        if isinstance(value, str):
            if name in _WHOLE:
                return value
            masked = self.mask_text(value)
            if masked is value and _is_secret_name(name) and _is_literal(value):
                self.counts["assignment"] += 1
                return "[masked:assignment]"
            return masked
        if is_object(value):
            return self._masked_object(value)
        if is_list(value):
            items = [self._masked(item) for item in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        return value

    def _masked_object(self, value: Data) -> Data:
        if value.get("type") in ("image", "base64") and isinstance(value.get("data"), str):
            return value  # base64 of an image: nothing in it is text
        items = {
            self.mask_text(name): item if name == "call_id" else self._masked(item, name)
            for name, item in value.items()
        }
        same = len(items) == len(value) and all(
            name in items and items[name] is item for name, item in value.items()
        )
        return value if same else items

    def _hide(self, kind: str, match: re.Match[str]) -> str:
        self.counts[kind] += 1
        if "secret" not in match.re.groupindex or match["secret"] is None:
            return f"[masked:{kind}]"
        start, end = match.span("secret")
        text, base = match.group(), match.start()
        return f"{text[: start - base]}[masked:{kind}]{text[end - base :]}"

    def _mask_assignments(self, text: str) -> str:
        lowered = text.lower() if text.isascii() else _UPPER.sub(_lower, text)
        found: dict[int, int] = {}
        for core in NAME_CORES:
            start = lowered.find(core)
            while start >= 0:
                match = ASSIGNED.match(text, start + len(core))
                if match is not None and _is_secret(match, start):
                    found[match.start("quoted" if match["quoted"] else "plain")] = match.end(
                        "quoted" if match["quoted"] else "plain"
                    )
                start = lowered.find(core, start + len(core))
        pieces: list[str] = []
        done = 0
        for start, end in sorted(found.items()):
            if start >= done:
                self.counts["assignment"] += 1
                pieces += (text[done:start], "[masked:assignment]")
                done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def _mask_keys(self, text: str) -> str:
        """Private key blocks, whatever stands between their lines; also one that was cut off."""
        pieces: list[str] = []
        done = 0
        begins = list(_KEY_BEGIN.finditer(text))
        for index, begin in enumerate(begins):
            limit = begin.end() + _KEY_MAX
            if index + 1 < len(begins):
                limit = min(limit, begins[index + 1].start())
            end = _KEY_END.search(text, begin.end(), limit)
            stop = end.end() if end else _cut_key_end(text, begin.end(), limit)
            is_key = _is_key_body(text[begin.end() : end.start() if end else stop])
            if not is_key and (first := _KEY_FIRST.match(text, begin.end(), limit)):
                is_key, stop = True, first.end()
            if is_key:
                self.counts["private_key"] += 1
                pieces += (text[done : begin.start()], "[masked:private_key]")
                done = stop
        return "".join((*pieces, text[done:])) if pieces else text

    def _mask_tails(self, text: str) -> str:
        """The ends of private keys whose first part is missing."""
        pieces: list[str] = []
        done = last = 0
        for end in _KEY_END.finditer(text):
            start = _tail_start(text, max(last, end.start() - _KEY_MAX), end.start())
            last = end.end()
            if start is not None:
                self.counts["private_key"] += 1
                pieces += (text[done:start], "[masked:private_key]")
                done = end.end()
        return "".join((*pieces, text[done:])) if pieces else text


def _lower(match: re.Match[str]) -> str:
    return match.group().lower()


def _compiled(kind: str, pattern: str) -> Shape:
    try:
        return Shape(kind, re.compile(pattern))
    except re.error as error:
        raise UsageError(
            f"the pattern for secrets of kind {kind!r} is no regular expression: {error};"
            " correct it in the configuration"
        ) from error


def _cut_key_end(text: str, start: int, limit: int) -> int:
    """Where the body of a key without an end line stops: at the first line that is none of it."""
    end = start
    for line in text[start:limit].splitlines(keepends=True):
        words: Iterable[str] = re.split(r"[^A-Za-z0-9+/=]+", line)
        if line.strip() and not any(len(word) >= 16 for word in words) and end > start + 2:
            rest = _KEY_REST.match(line)
            return min(end + (rest.end() if rest else 0), limit)
        end += len(line)
    return min(end, limit)


def _is_key_body(body: str) -> bool:
    """Whether what stands in a key's block can be one: long, or short and nothing else."""
    if _KEY_BODY.search(body):
        return True
    lines = [line.strip() for line in _KEY_BREAK.split(body)]
    return all(map(_KEY_LINE.fullmatch, lines)) and sum(map(len, lines)) >= 8


def _tail_start(text: str, limit: int, end: int) -> int | None:
    """Where the lines of a key begin that end before its end line, or None where none do."""
    start, long = end, 0
    for word in reversed(list(_KEY_WORD.finditer(text, limit, end))):
        if start - word.end() > _KEY_GAP:
            break
        size = len(word.group())
        before = text[limit : word.start()]
        alone = word.start() == limit or before.endswith(("\n", "\\"))
        if size >= 16 or (alone and (not long or word.start() == limit)):
            start = word.start()
            long += size
    if long < 8:
        return None
    escaped = start > 0 and text[start - 1] == "\\" and text[start] in "nr"
    return start + 1 if escaped else start


def _is_secret(match: re.Match[str], core: int) -> bool:
    """Whether an assignment, whose name's core starts at `core`, holds a secret."""
    text, value = match.string, match["quoted"] or match["plain"]
    before = _NAME_START.search(text[max(0, core - 40) : core])
    name = (before.group() if before else "") + text[core : match.end("rest")]
    if not _is_secret_name(name) or not _may_be_number(name, value):
        return False
    in_shell = match["sign"] == "=" and name == name.upper()
    return _is_literal(value) if in_shell else _looks_secret(value)


def _is_secret_name(name: str) -> bool:
    return SECRET_NAME.search(name) is not None and not NO_SECRET_NAME.search(name)


def _may_be_number(name: str, value: str) -> bool:
    """A number is a count, unless it is a password."""
    return not value.replace(".", "").isdigit() or "passw" in name.lower()


def _is_literal(value: str) -> bool:
    """Whether a value is one at all, and no placeholder, variable or sentence."""
    return (
        len(value) >= 4
        and not any(character.isspace() for character in value)
        and "[masked:" not in value
        and not _PLACEHOLDERS.match(value)
    )


def _looks_secret(value: str) -> bool:
    """Whether a value in an assignment looks like a secret and not like a piece of a program."""
    if len(value) < 6 or not _is_literal(value) or _DOTTED.match(value):
        return False
    has_digit = any(character.isdigit() for character in value)
    has_sign = any(not (character.isalnum() or character in "_-.:/") for character in value)
    lower = sum(character.islower() for character in value)
    upper = sum(character.isupper() for character in value)
    return has_digit or has_sign or (len(value) >= 12 and lower >= 3 and upper >= 4)
