"""docs/settings.md says what the code says."""

import re
from pathlib import Path

import pytest

from tests.unit.cli.calls import isolated
from turnlog.cli import settings_page
from turnlog.cli.settings import choose_kafka, choose_log
from turnlog.log.client import check, read

FILE = Path(__file__).parents[3] / "docs/settings.md"


def test_the_page_is_as_the_code_makes_it() -> None:
    assert FILE.read_text("utf-8") == settings_page.page(), (
        "run: .venv/bin/python -m turnlog.cli.settings_page > docs/settings.md"
    )


@pytest.mark.parametrize("page", ["settings.md", "kafka-security.md"])
def test_the_examples_can_be_used(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated(monkeypatch, tmp_path)
    (example,) = re.findall(r"```toml\n(.*?)```", (FILE.parent / page).read_text("utf-8"), re.S)
    (tmp_path / "config.toml").write_text(example)
    monkeypatch.setenv("TURNLOG_CONFIG", "config.toml")
    assert choose_log(None)[1] == "config.toml"
    kafka = {name: chosen.value for name, chosen in choose_kafka(None).items()}
    assert kafka["security.protocol"] == "SASL_SSL"
    assert check(read(kafka))
