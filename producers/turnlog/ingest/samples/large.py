"""A session file of any size, for measuring: turns of a long session, of the usual line sizes."""

from __future__ import annotations

from pathlib import Path

from turnlog.ingest.samples.claude_writer import ClaudeWriter, call, named, text

# fmt: off
WORDS: tuple[str, ...] = (
    "def", "tide", "level", "hour", "return", "for", "in", "rows", "table", "yield",
    "import", "from", "if", "else", "while", "round", "print", "station", "bergen", "kiel",
    "oslo", "height", "water", "low", "high", "moon", "spring", "neap", "check", "value",
    "list", "map", "set", "the", "a", "of", "to", "is", "and", "that", "with", "each",
    "not", "one", "was", "are", "by", "on",
)
# fmt: on
MEGABYTE = 1_000_000


def big_claude_file(path: Path, megabytes: int) -> str:
    """Write a file of at least so many megabytes; gives its session's id. Lines have 2 KB in the
    mean, as in real files: many small ones, and tool results of up to 12 KB."""
    session = named("big", megabytes)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [_text(seed) for seed in range(64)]
    written = turn = 0
    out = ClaudeWriter(session, start="2026-03-06")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while written < megabytes * MEGABYTE:
            _turn(out, turn, texts)
            turn += 1
            block = "\n".join(out.lines) + "\n"
            written += len(block)
            file.write(block)
            out.lines.clear()
    return session


def _turn(out: ClaudeWriter, turn: int, texts: list[str]) -> None:
    out.prompt(texts[turn % 64][:300])
    for step in range(6):
        name = f"{turn}_{step}"
        out.answer(
            name,
            text(texts[(turn + step) % 64][:400]),
            call(f"{name}_a", "Read", file_path=f"src/part_{step}.py"),
            call(f"{name}_b", "Bash", command=texts[step][:120]),
            stop="tool_use",
            usage=[12, 30, 90],
        )
        size = (1_200, 3_000, 6_000)[(turn + step) % 3]
        out.result(f"toolu_{name}_a", texts[(turn * 7 + step) % 64][:size])
        out.result(f"toolu_{name}_b", texts[(turn * 5 + step) % 64][: size // 2])
    out.answer(f"{turn}_end", text(texts[turn % 64][:900]), stop="end_turn", usage=[120])


def _text(seed: int) -> str:
    """Some thousand characters that look like code, the same for the same seed."""
    state: int = seed * 2_654_435_761 + 1
    pieces: list[str] = []
    length = 0
    while length < 6_000:
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        word = WORDS[(state >> 33) % len(WORDS)]
        end = "\n    " if (state >> 50) % 9 == 0 else " "
        pieces.append(word + end)
        length += len(word) + len(end)
    return "".join(pieces)
