"""Secrets of known shapes are masked wherever they stand; what only looks alike is left."""

import json
import time
from typing import Any

import orjson
import pytest

from turnlog.core.errors import UsageError
from turnlog.ingest.secrets import Masker

Json = Any

# Put together here, so that no scanner takes this file for a leak.
LOWER, UPPER, DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
MIXED = (LOWER[:12] + UPPER[:12] + DIGITS) * 3
SECRETS = {
    "anthropic_key": "sk-" + f"ant-api03-{MIXED[:40]}-{MIXED[:8]}",
    "openrouter_key": "sk-" + f"or-v1-{'0123456789abcdef' * 4}",
    "openai_key": "sk-" + f"proj-{MIXED[:48]}",
    "stripe_key": "rk_" + f"live_{MIXED[:24]}",
    "webhook_secret": "whsec" + f"_{MIXED[:32]}",
    "aws_access_key": "AKIA" + "IOSFODNN7EXAMPLE",
    "github_token": "ghp" + f"_{MIXED[:36]}",
    "gitlab_token": "glpat" + f"-{MIXED[:20]}",
    "slack_token": "xoxb" + f"-{DIGITS}-{MIXED[:24]}",
    "groq_key": "gsk" + f"_{MIXED[:52]}",
    "xai_key": "xai" + f"-{MIXED[:80]}",
    "google_key": "AIza" + MIXED[:35],
    "google_token": "ya29" + f".{MIXED[:40]}",
    "google_secret": "GOCSPX" + f"-{MIXED[:28]}",
    "npm_token": "npm" + f"_{MIXED[:36]}",
    "huggingface_token": "hf" + f"_{MIXED[:34]}",
    "pypi_token": "pypi" + f"-{MIXED[:60]}",
    "sendgrid_key": "SG" + f".{MIXED[:22]}.{MIXED[:43]}",
    "age_key": "AGE-SECRET-" + f"KEY-1{(UPPER + DIGITS) * 2}"[:70],
    "jwt": "eyJ" + f"{MIXED[:20]}.{MIXED[:40]}.{MIXED[:43]}",
}
MORE = {
    "github_token": ["github_" + f"pat_{MIXED[:40]}", "gho" + f"_{MIXED[:36]}"],
    "slack_token": ["xapp-1" + f"-{UPPER}-{DIGITS}"],
    "aws_access_key": ["ASIA" + "IOSFODNN7EXAMPLE"],
    "stripe_key": ["sk_" + f"live_{MIXED[:24]}"],
}
PEM = (
    "-----BEGIN OPENSSH PRIVATE "
    "KEY-----\n" + "\n".join([MIXED[:64]] * 6) + "\n-----END OPENSSH PRIVATE KEY-----"
)


def masked(text: str) -> str:
    masker = Masker()
    data = {"content": [{"type": "text", "text": text}]}
    if not masker.suspects(orjson.dumps(data)):
        assert Masker().mask_text(text) == text  # nothing is masked that was not suspected
        return text
    result: str = masker.mask(data)["content"][0]["text"]
    return result


SHAPES = [
    *SECRETS.items(),
    *((kind, secret) for kind, secrets in MORE.items() for secret in secrets),
]


@pytest.mark.parametrize(("kind", "secret"), SHAPES)
def test_a_known_shape_is_masked_and_counted_by_its_kind(kind: str, secret: str) -> None:
    masker = Masker()
    assert masker.mask_text(f"use {secret} now") == f"use [masked:{kind}] now"
    assert masker.counts == {kind: 1}


@pytest.mark.parametrize(("kind", "secret"), SHAPES)
def test_it_is_masked_in_whatever_stands_around_it(kind: str, secret: str) -> None:
    rooms = [
        secret,
        f"({secret})",
        f"\x1b[32m{secret}\x1b[0m",
        json.dumps({"out": f"line\n{secret}\n"}),
        json.dumps({"out": json.dumps({"in": f"line\n{secret}\t"})}),
        f"curl -H x:{secret} http://h/{secret}?a=1",
        f"KEY={secret}\nNEXT=1",
        f"1\u2192{secret}",
    ]
    for room in rooms:
        assert secret not in masked(room), room
        assert "[masked:" in masked(room)


@pytest.mark.parametrize("secret", [secret for _, secret in SHAPES])
def test_every_string_of_an_event_is_searched(secret: str) -> None:
    data: Json = {
        "content": [
            {"type": "tool_call", "call_id": "c", "name": "n", "args": {"a": [{"b": secret}]}},
            {"type": "opaque", "value": {secret: 1}},
        ],
        "details": {"stdout": secret, "n": 5},
        "source": [secret],
    }
    masker = Masker()
    assert masker.suspects(orjson.dumps(data))
    assert secret not in json.dumps(masker.mask(data))
    assert masker.counts.total() == 4


def test_private_keys_are_masked_as_blocks() -> None:
    numbered = "\n".join(f"{n}\u2192{line}" for n, line in enumerate(PEM.splitlines()))
    for room in (PEM, PEM.replace("\n", "\\n"), numbered, json.dumps({"k": PEM})):
        assert masked(f"a {room} b").replace('{"k": "', "").replace('"}', "") in (
            "a [masked:private_key] b",
            "a 0\u2192[masked:private_key] b",
        )
    assert masked(f"{PEM}\n{PEM}") == "[masked:private_key]\n[masked:private_key]"


def test_a_private_key_that_was_cut_off_is_masked_as_far_as_it_goes() -> None:
    cut = PEM[:200]
    assert masked(f"{cut}\n[output cut]\nok") == "[masked:private_key][output cut]\nok"
    assert MIXED[:40] not in masked(cut)


def test_a_private_key_cut_inside_a_line_is_masked_to_its_last_character() -> None:
    start = PEM.index(MIXED[:64])
    for size in range(start + 8, len(PEM) - 40):
        cut = PEM[:size].rstrip()
        assert masked(f"a {cut}") == "a [masked:private_key]", size
        assert masked(f"a {cut}\n[output cut]\nok").endswith("[output cut]\nok"), size
        if size < start + 32:
            continue
        assert "[masked:private_key]" in masked(f"a {cut}... [cut]")
        rest = cut.rsplit("\n", 1)[1]
        if len(rest) >= 4 and any(c.isupper() or c.isdigit() for c in rest):
            assert rest not in masked(f"a {cut}... [cut]")


def test_a_private_key_whose_first_part_is_missing_is_masked() -> None:
    end = PEM.rindex("\n-----END")
    for size in range(PEM.index(MIXED[:64]), end - 8):
        tail = PEM[size:].lstrip("\n")
        assert masked(tail) == "[masked:private_key]", size
        assert masked(f"{tail}\nok").endswith("]\nok")
        for line in (line for line in tail.splitlines()[:-1] if len(line) >= 16):
            assert line not in masked(f"the end:\n{tail}\nok")
            assert line not in masked("the end:\\n" + tail.replace("\n", "\\n") + "\\nok")
    numbered = "\n".join(f"{n + 7}\u2192{line}" for n, line in enumerate(PEM.splitlines()[3:]))
    assert masked(numbered).removeprefix("7\u2192") == "[masked:private_key]"
    assert masked(f"{PEM}\n{PEM[150:]}").count("[masked:private_key]") == 2


@pytest.mark.parametrize("line_end", ["\n", "\\n", "\r\n"])
def test_a_short_private_key_is_masked(line_end: str) -> None:
    words = ["-----BEGIN RSA PRIVATE " + "KEY-----", "MIIEabcdef", "qqqZZZ=="]
    whole = line_end.join([*words, "-----END RSA PRIVATE " + "KEY-----"])
    assert masked(f"here {whole} end") == "here [masked:private_key] end"
    cut = "\n".join(["-----BEGIN PRIVATE " + "KEY-----", "MIICUTcutcutcut", " end"])
    assert masked(f"here {cut}") == "here [masked:private_key] end"
    inside = json.dumps({"a": json.dumps({"b": cut.removesuffix(" end")})})
    assert "MIICUT" not in masked(inside)
    assert json.loads(json.loads(masked(inside))["a"]) == {"b": "[masked:private_key]\n"}


def test_a_telegram_token_is_masked_and_what_looks_alike_is_left() -> None:
    secret = "AA" + MIXED[:33]
    for before in ("bot", "", "\\n"):
        text = f"{before}{DIGITS[1:]}:{secret}/send"
        assert masked(text) == f"{before}{DIGITS[1:]}:[masked:telegram_token]/send"
    for text in (f"12:{secret}", f"{DIGITS}{DIGITS}:{secret}", f"{DIGITS[1:]}:{secret}xyz"):
        assert masked(text) == text


def test_the_mere_end_of_a_private_key_is_left() -> None:
    for text in (
        'until "-----END PRIVATE ' + 'KEY-----" comes',
        "-----END PRIVATE " + "KEY-----",
        "the block ends with\n-----END PRIVATE " + "KEY-----",
    ):
        assert masked(text) == text


def test_the_mere_words_of_a_private_key_are_left() -> None:
    for text in ('if "-----BEGIN PRIVATE KEY-----" in text:', "-----BEGIN CERTIFICATE-----"):
        assert masked(text) == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Authorization: Bearer abc123def456ghi789jkl0", "Authorization: Bearer [masked]"),
        ("authorization: bearer\tabc123def456ghi789jkl0", "authorization: bearer\t[masked]"),
        ('"Authorization": "Basic dXNlcjpwYXNz"', '"Authorization": "Basic [masked]"'),
        ("postgres://bob:s3cr@t!@db:5432/x", "postgres://bob:[masked]@db:5432/x"),
        ("https://:tok3n@host/x", "https://:[masked]@host/x"),
        (
            "https://hooks.slack.com/services/T00/B00/abcdefghijklmnop",
            "https://hooks.slack.com/services/[masked]",
        ),
        ("password=hunter2", "password=[masked]"),
        ("PASSWORD=hunter\n", "PASSWORD=[masked]\n"),
        ("DB_PASSWORD=letmein", "DB_PASSWORD=[masked]"),
        ("password: 'hunter2!'", "password: '[masked]'"),
        ("password=123456", "password=[masked]"),
        ("API_KEY = abcdef123456", "API_KEY = [masked]"),
        ('api_key="abcd1234efgh"', 'api_key="[masked]"'),
        ('{"clientSecret": "a1b2c3d4e5"}', '{"clientSecret": "[masked]"}'),
        (r"{\"token\": \"9f8a7b6c5d4e\"}", r"{\"token\": \"[masked]\"}"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [masked]"),
        ("--auth-token=abc123def456", "--auth-token=[masked]"),
        ("ÄPFEL password=hunter2 ĲS", "ÄPFEL password=[masked] ĲS"),
        ("İ PASSWORD=hunter2", "İ PASSWORD=[masked]"),
        ("secretKey: qWeRtYuIoPaSdF", "secretKey: [masked]"),
    ],
)
def test_assignments_and_headers(text: str, wanted: str) -> None:
    found = masked(text)
    for kind in ("authorization", "url_password", "slack_webhook", "assignment"):
        found = found.replace(f"[masked:{kind}]", "[masked]")
    assert found == wanted


@pytest.mark.parametrize(
    "text",
    [
        "password: string",
        "password = getPassword()",
        "const password = req.body.password;",
        "password: process.env.DB_PASSWORD1",
        "PASSWORD=$DB_PASSWORD",
        "PASSWORD=${SECRET}",
        "password=<your-password>",
        "password=********",
        'password: "password"',
        "passwordField: input1",
        "key: nanoid1()",
        "tokens: 1234567",
        "max_tokens=4096",
        "MAX_TOKENS=4096",
        '"input_tokens": 49327, "output_tokens": 210',
        "secret_name: my-secret-v1",
        "API_KEY_HEADER=x-api-key-1",
        "next_page_token: abc123def456",
        "task-force risk-averse-long-Name-1A",
        "sk-loading-indicator-very-large",
        "the tokenizer: splits1234 words",
        "Bearer of good news and of many more1",
        "Basic understanding-of-things1",
        "https://example.org:8080/a@b",
        "mailto:ada@example.org",
        "git@github.com:owner/name.git",
        "eyJ",
        "0123456789abcdef" * 4,
        "toolu_01VZ4mZBZtXjHzEgB2dFd6Bs msg_01CEK1pdabcdef",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_what_only_looks_alike_is_left(text: str) -> None:
    assert masked(text) == text


def test_a_value_under_a_telling_name_is_masked() -> None:
    masker = Masker()
    args = {"password": "correcthorse", "user": "bob", "api_key": "xyzw", "tokens": "many"}
    got = masker.mask({"args": {**args, "secret": {"password": "two words here"}, "token": None}})
    assert got["args"] == {
        **args,
        "password": "[masked:assignment]",
        "api_key": "[masked:assignment]",
        "secret": {"password": "two words here"},
        "token": None,
    }


def test_ids_signatures_digests_and_images_are_left_whole() -> None:
    key = SECRETS["aws_access_key"]
    data = {
        "parent": key,
        "call_id": key,
        "content": [
            {"type": "reasoning", "text": "x", "signature": key, "encrypted_content": key},
            {"type": "tool_call", "call_id": key, "name": "n", "args": {}},
            {"type": "image", "data": key},
            {"type": "blob", "digest": key},
            {"type": "opaque", "value": {"source": {"type": "base64", "data": key}}},
        ],
    }
    assert Masker().mask(data) is data


def test_clean_data_is_given_back_as_it_is() -> None:
    data = {"content": [{"type": "text", "text": "nothing here"}], "n": [1, {"a": None}]}
    assert Masker().mask(data) is data


def test_further_patterns_come_from_the_configuration() -> None:
    masker = Masker({"badge": r"BADGE-\d+", "pin": r"pin (?P<secret>\d{4})"})
    assert masker.suspects(b'{"text":"BADGE-1"}')
    assert not masker.suspects(b'{"text":"plain"}')
    assert masker.mask_text("BADGE-17, pin 1234") == "[masked:badge], pin [masked:pin]"
    with pytest.raises(UsageError, match="'odd' is no regular expression"):
        Masker({"odd": "("})


@pytest.mark.parametrize(
    "piece",
    [
        "A",
        "_",
        "eyJ",
        "5meyJ",
        "sk-",
        "sk-a",
        "://",
        "a://b:",
        "0123456789ABCDEF",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "AAAA\n-----END RSA PRIVATE KEY-----",
        "12345678:A",
        "xai-gsk_",
        "-----BEGIN RSA PRIVATE KEY-----\n" + "A" * 40,
        "api_key=",
        "password ",
        "password",
        "token:",
        "Bearer ",
        "xox",
        "hooks.slack.com/services/",
        "\\nsk-",
        "SG.aaaaaaaaaaaaaaaaaaaa",
    ],
)
def test_no_text_makes_it_slow(piece: str) -> None:
    text = (piece * (400_000 // len(piece)))[:400_000] + " secret@"
    started = time.process_time()
    Masker().mask_text(text)
    assert time.process_time() - started < 2.5
