"""The shapes of secrets that are known, and what tells in passing that a text may hold one.

What is once in an append-only log stays there, so secrets are masked before they are published. A
shape is masked wherever it stands, in text, in JSON inside text, in terminal output; a password in
an assignment only where the value looks like one, because masking must not eat source code.

Every pattern is linear in its input: a start that fails is bounded, or stands at a boundary that
the rest of the pattern cannot contain.
"""

from __future__ import annotations

import re
from typing import NamedTuple


def _word(prefix: str) -> str:
    """A prefix that is not inside a word: it may stand behind an escaped newline of JSON inside
    text, or a terminal's colour code. The prefix comes first, so that it is searched fast."""
    before = (
        rf"(?<=\\[nrtbf]{prefix})|(?<=\\u[0-9a-fA-F]{{4}}{prefix})|(?<=\[m{prefix})"
        rf"|(?<=\[[0-9]m{prefix})|(?<=\[[0-9]{{2}}m{prefix})"
        rf"|(?<=;[0-9]m{prefix})|(?<=;[0-9]{{2}}m{prefix})"
    )
    return rf"{prefix}(?:(?<![A-Za-z0-9_-]{prefix})|{before})"


_TOKEN = r"[A-Za-z0-9_-]"  # noqa: S105  # a character class
_MIXED = rf"(?={_TOKEN}{{0,200}}[0-9])(?={_TOKEN}{{0,200}}[A-Z])"


IN_URL = r"://[^\s:/@\"'\\<>{}]{0,128}:(?P<secret>[^\s/\"'\\<>{}$]{3,256})@"


class Shape(NamedTuple):
    """A pattern whose group `secret`, or whole match, is masked. One of `hints` is in every match;
    without hints every text is searched."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()


def _shape(kind: str, pattern: str, *hints: str) -> Shape:
    return Shape(kind, re.compile(pattern), hints)


SHAPES: tuple[Shape, ...] = (
    _shape("anthropic_key", rf"sk-ant-{_TOKEN}{{16,}}", "sk-ant-"),
    _shape("openrouter_key", r"sk-or-v1-[0-9a-f]{32,}", "sk-or-"),
    _shape("openai_key", rf"{_word('sk-')}{_MIXED}{_TOKEN}{{20,}}", "sk-"),
    _shape("stripe_key", r"[rs]k_live_[A-Za-z0-9]{16,}", "_live_"),
    _shape("webhook_secret", r"whsec_[A-Za-z0-9+/=]{24,}", "whsec_"),
    _shape("aws_access_key", r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _shape("github_token", r"gh[pousr]_[A-Za-z0-9]{20,}", "gh"),
    _shape("github_token", r"github_pat_[A-Za-z0-9_]{20,}", "github_pat_"),
    _shape("gitlab_token", rf"gl(?:pat|ptt|dt|rt|ft|cbt|agent|soat)-{_TOKEN}{{20,}}", "gl"),
    _shape("slack_token", r"xox[abeprs]-[A-Za-z0-9-]{10,}", "xox"),
    _shape("slack_token", r"xapp-[0-9]-[A-Za-z0-9-]{20,}", "xapp-"),
    _shape(
        "slack_webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,})",
        "hooks.slack.com",
    ),
    _shape("groq_key", r"gsk_[A-Za-z0-9]{32,}", "gsk_"),
    _shape("xai_key", rf"{_word('xai-')}{_TOKEN}{{32,}}", "xai-"),
    _shape(
        "telegram_token",
        rf"(?<![0-9])[0-9]{{8,10}}:(?P<secret>A{_TOKEN}{{34}})(?!{_TOKEN})",
        ":A",
    ),
    _shape("google_key", rf"AIza{_TOKEN}{{35}}", "AIza"),
    _shape("google_token", rf"ya29\.{_TOKEN}{{20,}}", "ya29."),
    _shape("google_secret", rf"GOCSPX-{_TOKEN}{{24,}}", "GOCSPX-"),
    _shape("npm_token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _shape("huggingface_token", rf"{_word('hf_')}[A-Za-z0-9]{{30,}}", "hf_"),
    _shape("pypi_token", rf"pypi-{_TOKEN}{{50,}}", "pypi-"),
    _shape("sendgrid_key", rf"SG\.{_TOKEN}{{16,64}}\.{_TOKEN}{{16,64}}", "SG."),
    _shape("age_key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", "AGE-SECRET-KEY-"),
    _shape(
        "jwt",
        rf"{_word('eyJ')}{_TOKEN}{{10,8000}}\.{_TOKEN}{{10,8000}}\.{_TOKEN}{{10,2000}}",
        "eyJ",
    ),
    _shape(
        "authorization",
        r"(?i:bearer)[ \t]{1,4}(?P<secret>(?=[A-Za-z0-9._~+/=-]{0,200}[0-9])"
        r"[A-Za-z0-9._~+/=-]{20,})",
        "earer ",
        "earer\t",
        "EARER ",
    ),
    _shape(
        "authorization",
        r"(?i:authorization)[\\\"' :=]{1,10}(?i:basic)[ \t]{1,4}"
        r"(?P<secret>[A-Za-z0-9+/=_-]{8,})",
        "asic ",
        "ASIC ",
    ),
    _shape(
        "url_password",
        IN_URL,
        "@",
    ),
)

NAME_CORES = ("passw", "passphrase", "secret", "key", "token")
"""What every name of a secret holds, in lower case; searched one by one, which is fast."""
SECRET_NAME = re.compile(
    r"(?i:passw(?:or)?d|passphrase|secret|(?:api|access|private|account|encryption|auth)[_-]?key"
    r"|(?<![a-z])token(?-i:(?![a-z]))(?!s)|(?:auth|access|refresh|id|api|bot)[_-]?token(?-i:(?![a-z]))(?!s))"
)
ASSIGNED = re.compile(
    r"(?P<rest>[A-Za-z0-9_-]{0,24})"
    r"(?P<sign>\\{0,3}[\"']?[ \t]{0,3}(?:=|:|:=|=>)[ \t]{0,3})"
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\s\"'`\\]{4,400})(?P=quote)"
    r"|(?P<plain>[^\s\"'`\\,;(){}<>\[\]&|]{4,400})(?![^\s\"'`\\,;){}<>\]&|]))"
)
"""What follows such a core: the rest of the name, a sign, and the value, quoted or plain."""
NO_SECRET_NAME = re.compile(
    r"(?i)(?:name|ids?|file|path|type|ur[il]|count|length|size|field|label|version|arn|ref|header"
    r"|izer|prefix|policy|expir\w*|ttl|hint|pattern|schema|manager|provider|limit|usage|budget)$"
    r"|(?:page|next|continuation|sync|csrf)[_-]?token$"
)
"""Names that hold such a word and yet say that their value is no secret."""

# searched in JSON, where a tab is `\\t`
_SIGN = r"[A-Za-z0-9_-]{0,24}[\\\"' \tt]{0,6}[:=]"
SUSPECT = (
    r"_(?:(?<=gh[pousr]_)|(?<=github_pat_)|(?<=_live_)|(?<=npm_)|(?<=hf_)|(?<=whsec_)|(?<=gsk_))"
    r"|-(?:----(?:BEGIN|END)|(?<=xai-)|(?<=sk-)|(?<=xox[abeprs]-)|(?<=xapp-)|(?<=pypi-)|(?<=GOCSPX-)"
    r"|(?<=SECRET-KEY-)|(?<=gl[pc][abt]t-)|(?<=gl[drf]t-)|(?<=glagent-)|(?<=glsoat-))"
    r"|A(?:KIA|SIA|Iza)|J(?<=eyJ)|SG\."
    r"|w(?<=assw)|W(?<=ASSW)|cret|CRET|b(?:earer[ \t\\]|asic )|B(?:earer[ \t\\]|asic |EARER|ASIC)"
    rf"|k(?:ey(?<![ \"'(.<]key){_SIGN}|en{_SIGN})|K(?:EY|ey{_SIGN}|EN{_SIGN})"
)
"""What tells in passing that a text may hold a secret; `RARE` and `IN_URL` do, too."""
RARE = ("hooks.slack.com", "ya29.", "assphrase", ":A")
