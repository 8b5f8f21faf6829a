"""docs/settings.md says what the code says."""

from pathlib import Path

from turnlog.cli.settings_page import page

FILE = Path(__file__).parents[3] / "docs/settings.md"


def test_the_page_is_as_the_code_makes_it() -> None:
    assert FILE.read_text("utf-8") == page(), (
        "run: .venv/bin/python -m turnlog.cli.settings_page > docs/settings.md"
    )
