"""The page docs/settings.md, made from what the code says:

python -m turnlog.cli.settings_page > docs/settings.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from turnlog.cli.settings_model import Fields
from turnlog.log.client import ALIASES, REFUSED, SETTINGS

_HEAD = """\
# Settings

A flag wins over a variable of the environment, that over a `.env` in the working directory, and
that over the config file: `turnlog/config.toml` in your folder for settings (`~/.config` on
Linux), or the one that `TURNLOG_CONFIG` names. `turnlog config show` prints what is in force and
where it comes from; `turnlog config check` says what is wrong, and with `--connect` whether the
log can be reached.

```toml
log = "kafka://kafka-1.example.org:9093,kafka-2.example.org:9093/sessions"

[kafka]
security.protocol = "SASL_SSL"
sasl.mechanism = "SCRAM-SHA-512"
sasl.username = "agent-host"
sasl.password.file = "/run/secrets/kafka"
ssl.ca.location = "/etc/ssl/kafka-ca.pem"
```
"""
_KAFKA = """\
## Kafka's clients

Under Kafka's own names, as Java's clients and librdkafka have them: in the table `[kafka]` of the
config file, as a variable, as `--kafka NAME=VALUE`, or in Python as `turnlog.log.open(url,
kafka={…})` and `turnlog.log.topics.create(url, kafka={…})`. A secret is not taken from a flag,
which other users of a machine can see, and is never printed. A name that is not known is refused.
Which rights a user needs is told in [kafka-security.md](kafka-security.md).
"""
_REFUSED = """\
## What cannot be set

These names of Kafka's are refused, for a promise of the log depends on them, or there is nothing
that they could do.
"""


def page() -> str:
    """The whole page."""
    fields = [
        (
            f"`{name}`",
            f"`TURNLOG_{name.upper()}`",
            " ".join((field.description or "").split()),
            "" if field.default is None else f"`{json.dumps(field.default)}`",
        )
        for name, field in Fields.model_fields.items()
    ]
    fields += [
        ("", "`TURNLOG_CONFIG`", "Another config file.", ""),
        ("", "`TURNLOG_DEBUG`", "Errors are raised whole.", ""),
        ("", "`NO_COLOR`", "No colours.", ""),
    ]
    others = {
        name: [f"`{each}`" for each, canonical in ALIASES.items() if canonical == name]
        for name in SETTINGS
    }
    kafka = [
        (
            ", ".join([f"`{name}`", *others[name]]),
            f"`{each.variable}`",
            each.meaning
            + (f" One of {', '.join(each.values)}." if each.values else "")
            + (" Secret." if each.secret else ""),
            each.default,
        )
        for name, each in SETTINGS.items()
    ]
    head = ("setting", "variable", "meaning", "default")
    refused: dict[str, list[str]] = {}
    for name, why in REFUSED.items():
        refused.setdefault(why, []).append(f"`{name}`")
    reasons = [(", ".join(names), why) for why, names in refused.items()]
    return (
        "\n".join(
            [
                _HEAD,
                _table(head, fields),
                _KAFKA,
                _table(head, kafka),
                _REFUSED,
                _table(("setting", "because"), reasons),
            ]
        ).rstrip("\n")
        + "\n"
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
