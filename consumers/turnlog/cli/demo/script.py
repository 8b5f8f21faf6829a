"""The day that the demo's host lives through: what is asked, and what its model answers.

The model is a table, so that a second host's model goes on where the first one's was: an answer is
found by the newest message of the user, and by how often the model has spoken since.
"""

from __future__ import annotations

from typing import Any

from turnlog.core.errors import StateError
from turnlog.host import Reply
from turnlog.testing import call

Json = Any
Context = list[dict[str, Json]]

DAY = "harbour"
"""The session that is killed; those that are frozen are named in `turnlog.cli.demo.frozen`."""
MODEL = "scripted"
TABLE = "Write today's tide table, and sort it by height."
FRENCH = "Say the lowest one in French, too."
HELP = "Let a helper check the table against the rules."
QUESTION = "Does tides.csv keep to rules.txt?"
FRAM = "The Fram comes in at noon: level, berth, fuel, and a notice to all."
STORM = "A storm is coming: tell all ships."
DROPPED = "A French text was tried and dropped."
SUMMARY = "Today's tide table was written, sorted and checked."

RULES = "Heights are whole centimetres.\n"
TIDES = "05:52,138\n11:58,24\n18:20,143\n23:57,21\n"

TOKENS = {"input": 100, "output": 10}
"""What each answer takes: so much for each that is in the log, whatever crashed meanwhile."""
USAGE: dict[str, Json] = {**TOKENS, "cost_usd": "0.0005"}

ANSWERS: dict[str, list[Json]] = {
    TABLE: [
        [call("write_file", path="tides.csv", text=TIDES)],
        [call("run_command", command=["sort", "-t,", "-k2n", "tides.csv"])],
        "tides.csv holds four tides; the lowest is 21 cm, at 23:57.",
    ],
    FRENCH: ["La marée la plus basse : 21 cm à 23 h 57."],
    HELP: [
        [call("ask_helper", question=QUESTION)],
        "The helper found nothing wrong with the table.",
    ],
    QUESTION: [
        [call("read_file", path="rules.txt"), call("read_file", path="tides.csv")],
        "It does: all heights are whole centimetres.",
    ],
    FRAM: [
        [
            {"type": "text", "text": "All four at once."},
            call("read_gauge"),
            call("book_berth", ship="Fram", length_m=39),
            call("order_fuel", ship="Fram", litres=900),
            call("send_notice", text="The Fram comes in at noon."),
        ],
        "Berth 4 and the fuel are settled. Nobody knows whether the notice went out: please look.",
    ],
    STORM: [
        [call("send_notice", text="Storm from the west at six.")],
        "Nobody knows whether the notice went out: please look.",
    ],
}


async def model(context: Context) -> Reply:
    """The scripted model, for `run_turn`. Raises StateError for what is not in the script."""
    asked = max(index for index, item in enumerate(context) if item["role"] == "user")
    text = "".join(part["text"] for part in context[asked]["content"])
    spoken = sum(item["role"] == "assistant" for item in context[asked:])
    answers = ANSWERS.get(text, [])
    if spoken >= len(answers):
        raise StateError(f"demo: the script has no answer number {spoken + 1} to {text!r:.80}")
    return Reply(answers[spoken], USAGE)


async def summarise(messages: Context) -> str:
    """The scripted summariser."""
    del messages
    return SUMMARY
