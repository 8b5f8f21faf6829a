"""The house numbers, and what the linters cannot see: each rule is a function over one file.

A rule yields one line per fault. Each is also shown a fault of its kind, so that none goes blind.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = [ROOT / name for name in ("streams", "producers", "consumers")]
CLI = "consumers/turnlog/cli/"
CORE = "streams/turnlog/core/"

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
POSITIONAL_MAX = 5

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A checker may be silenced for one named rule, with the reason behind it.
SILENCED = re.compile(r"#\s*(?:type|pyright):\s*ignore")
SILENCED_WELL = re.compile(r"#\s*(?:type|pyright):\s*ignore\[[\w\-, ]+\]\s*#\s*\S+")


class Source(NamedTuple):
    path: str  # from the root of the repository, with slashes
    text: str

    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(ast.parse(self.text))


Rule = Callable[[Source], Iterator[str]]


def product() -> list[Source]:
    """Every Python file that is shipped."""
    return [
        Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
        for root in SOURCE_ROOTS
        for path in sorted(root.rglob("*.py"))
    ]


def calls(source: Source) -> Iterator[tuple[int, str]]:
    """Line and name of every call; a method's name begins with a dot."""
    for node in source.nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.lineno, "." + node.func.attr


def files_are_short(source: Source) -> Iterator[str]:
    if (count := len(source.text.splitlines())) > FILE_LINES_MAX:
        yield f"{source.path}: {count} lines, at most {FILE_LINES_MAX}"


def functions_are_short(source: Source) -> Iterator[str]:
    for node in source.nodes():
        if isinstance(node, FUNCTIONS) and node.end_lineno is not None:
            count = node.end_lineno - node.lineno + 1
            if count > FUNCTION_LINES_MAX:
                yield f"{source.path}:{node.lineno}: {node.name} has {count} lines"


def positional_arguments_are_few(source: Source) -> Iterator[str]:
    nodes = list(source.nodes())
    methods = {
        id(child)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, FUNCTIONS)
        and "staticmethod" not in map(ast.unparse, child.decorator_list)
    }
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            count = len(node.args.posonlyargs) + len(node.args.args) - (id(node) in methods)
            if count > POSITIONAL_MAX:
                yield f"{source.path}:{node.lineno}: {node.name} takes {count} by position"


def the_namespace_has_no_init(source: Source) -> Iterator[str]:
    if source.path.endswith("/turnlog/__init__.py") and source.path.count("/") == 2:
        yield f"{source.path}: hides the other source roots from an editable install and pyright"


def modules_say_why_they_exist(source: Source) -> Iterator[str]:
    if not ast.get_docstring(ast.parse(source.text)):
        yield f"{source.path}: no docstring"


def checkers_are_silenced_with_a_reason(source: Source) -> Iterator[str]:
    for kind, words, (line, _), *_ in tokenize.generate_tokens(io.StringIO(source.text).readline):
        silenced = kind == tokenize.COMMENT and SILENCED.search(words)
        if silenced and not SILENCED_WELL.search(words):
            yield f"{source.path}:{line}: write `ignore[code]  # reason`"


def only_the_cli_prints(source: Source) -> Iterator[str]:
    for line, name in calls(source):
        if name == "print" and not source.path.startswith(CLI):
            yield f"{source.path}:{line}: print"


def core_reads_no_file_and_no_clock(source: Source) -> Iterator[str]:
    """What needs no import of I/O: builtins, and the clock behind `datetime`."""
    impure = {"open", "input", "breakpoint", ".now", ".utcnow", ".today"}
    for line, name in calls(source):
        if source.path.startswith(CORE) and name in impure:
            yield f"{source.path}:{line}: {name}()"


FAULTS: list[tuple[Rule, str, str]] = [
    (files_are_short, "log/a.py", "x = 1\n" * 401),
    (functions_are_short, "log/a.py", "def f():\n" + "    x = 1\n" * 70),
    (positional_arguments_are_few, "log/a.py", "def f(a, b, c, d, /, e, g): ..."),
    (positional_arguments_are_few, "log/a.py", "class A:\n def f(self, a, b, c, d, e, g): ..."),
    (the_namespace_has_no_init, "__init__.py", ""),
    (modules_say_why_they_exist, "log/a.py", "x = 1\n"),
    (checkers_are_silenced_with_a_reason, "log/a.py", "x = 1  # type: ignore\n"),
    (checkers_are_silenced_with_a_reason, "log/a.py", "x = 1  # type: ignore[misc]\n"),
    (checkers_are_silenced_with_a_reason, "log/a.py", "x = 1  # pyright: ignore\n"),
    (only_the_cli_prints, "log/a.py", "print(1)"),
    (core_reads_no_file_and_no_clock, "core/a.py", "open('x')"),
    (core_reads_no_file_and_no_clock, "core/a.py", "datetime.datetime.now(UTC)"),
]
ALLOWED: list[tuple[Rule, str, str]] = [
    (files_are_short, "log/a.py", "x = 1\n" * 400),
    (functions_are_short, "log/a.py", "def f():\n" + "    x = 1\n" * 69),
    (positional_arguments_are_few, "log/a.py", "def f(a, b, c, d, e, *, g): ..."),
    (positional_arguments_are_few, "log/a.py", "class A:\n def f(self, a, b, c, d, e): ..."),
    (the_namespace_has_no_init, "log/__init__.py", ""),
    (checkers_are_silenced_with_a_reason, "log/a.py", "x = 1  # type: ignore[misc]  # why\n"),
    (core_reads_no_file_and_no_clock, "log/a.py", "open('x')"),
]
RULES = list(dict.fromkeys(rule for rule, _, _ in FAULTS))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_product_code_keeps_the_rule(rule: Rule) -> None:
    sources = product()
    assert sources, "no product file found: the rules would hold for nothing"
    faults = [fault for source in sources for fault in rule(source)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(("rule", "path", "text"), FAULTS)
def test_the_rule_sees_its_fault(rule: Rule, path: str, text: str) -> None:
    assert len(list(rule(Source(f"streams/turnlog/{path}", text)))) == 1


@pytest.mark.parametrize(("rule", "path", "text"), ALLOWED)
def test_the_rule_lets_the_limit_pass(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(f"streams/turnlog/{path}", text))) == []
