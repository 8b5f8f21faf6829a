"""Text of sessions made fit for a terminal: it is data, and nothing in it may act on the screen."""

from __future__ import annotations

NEWLINE = "⏎"
CUT = "…"

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
# C1 controls, and what reorders or hides the text around it
_HIDDEN = [
    *range(0x80, 0xA0),
    0x061C,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xE0000, 0xE0080),
]
_VISIBLE: dict[int, str] = _PICTURES | {code: f"\\u{{{code:x}}}" for code in _HIDDEN}
_LINES = _VISIBLE | {ord("\n"): "\n", ord("\t"): "    "}
_ONE_LINE = _VISIBLE | {ord("\n"): NEWLINE, ord("\t"): " "}
_JOINER = 0x200D  # holds emoji together, and hides nothing
for _table in (_LINES, _ONE_LINE):
    del _table[_JOINER]


def lines(text: str) -> str:
    """Text with its line breaks, every other control character made visible."""
    return text.replace("\r\n", "\n").translate(_LINES)


def one_line(text: str) -> str:
    """Text as one line, line breaks and every other control character made visible."""
    return text.strip().replace("\r\n", "\n").translate(_ONE_LINE)


def cut(text: str, length: int) -> str:
    """At most so many code points, the last one … where there were more."""
    return text if len(text) <= length else text[: max(length - 1, 0)] + CUT


def brief(text: str, length: int) -> str:
    """One line of at most so many code points. Cheap for any length of text."""
    return cut(one_line(text[: length + 64]), length) if text else ""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 entry, 1,204 entries."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Bytes for people."""
    for unit, step in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= step:
            return f"{count / step:,.1f} {unit}"
    return f"{count} B"


def tokens(count: int) -> str:
    """A number of tokens for people: 950, 12.4k, 3.1M."""
    for unit, step in (("M", 10**6), ("k", 10**3)):
        if count >= step:
            return f"{count / step:.1f}{unit}"
    return str(count)


def money(amount: str) -> str:
    """A price for people: two digits behind the point, more where it would read as nothing."""
    from decimal import Decimal

    value = Decimal(amount)
    digits = 2 if value == 0 or abs(value) >= Decimal("0.1") else 4
    return f"${value:,.{digits}f}"


def when(time: str | None) -> str:
    """A time label to the minute; it is text that somebody wrote, so nothing is computed."""
    return one_line(time[:16].replace("T", " ")) if time else "–"
