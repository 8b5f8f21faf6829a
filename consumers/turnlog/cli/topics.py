"""`turnlog topics`: make, check and describe the topic of a Kafka log."""

from __future__ import annotations

from typing import Any

from turnlog.cli.guard import FAILED
from turnlog.cli.plain import counted
from turnlog.cli.settings import choose_log, kafka_values
from turnlog.cli.terminal import Terminal
from turnlog.log import topics
from turnlog.log.topics import Found

_SHOWN = ("min.insync.replicas", "max.message.bytes", "compression.type")


def create_topic(
    terminal: Terminal, url: str | None, *, partitions: int, replication: int | None
) -> None:
    """Make a topic, or say what is wrong with the one that is there."""
    found = topics.create(
        _url(terminal, url),
        partitions=partitions,
        replication=replication,
        kafka=kafka_values(terminal.common.kafka),
    )
    _print_check(terminal, found)


def check_topic(terminal: Terminal, url: str | None) -> None:
    """Say what is wrong with a topic, and how it is mended."""
    kafka = kafka_values(terminal.common.kafka)
    _print_check(terminal, topics.look(_url(terminal, url), kafka=kafka))


def describe_topic(terminal: Terminal, url: str | None) -> None:
    """Print what there is to know of a topic."""
    found = topics.look(_url(terminal, url), kafka=kafka_values(terminal.common.kafka))
    if terminal.common.json:
        terminal.document(_as_data(found))
        return
    terminal.print((found.topic.name, "bold"), f"  id {found.topic.id}")
    for name in (*topics.RULES, *_SHOWN):
        terminal.print((f"  {name:<32}", "cyan"), found.settings.get(name, ""))
    for number, partition in enumerate(found.topic.partitions):
        leader = "no leader" if partition.leader < 0 else f"leader {partition.leader}"
        terminal.print(
            (f"  partition {number:<4}", "cyan"),
            f"{found.ends[number] - found.begins[number]:,} records, {leader},"
            f" {len(partition.in_sync)} of {counted(len(partition.replicas), 'replica')} in sync",
        )
    for line in (*map(str, found.problems), *found.notes):
        terminal.print(("  ! ", "red"), line)


def _print_check(terminal: Terminal, found: Found) -> None:
    if found.problems:
        terminal.status = FAILED
    if terminal.common.json:
        terminal.document(_as_data(found))
        return
    for problem in found.problems:
        terminal.print(("wrong  ", "bold red"), problem.what)
        if problem.mend is not None:
            terminal.print("       ", (problem.mend, "cyan"))
    for note in found.notes:
        terminal.print(("note   ", "yellow"), note)
    if not found.problems:
        count = counted(len(found.topic.partitions), "partition")
        terminal.say(f"topic {found.topic.name!r} is as it must be: {count}, id {found.topic.id}")


def _as_data(found: Found) -> dict[str, Any]:
    return {
        "topic": found.topic.name,
        "id": found.topic.id,
        "meta": found.meta._asdict() if found.meta is not None else None,
        "settings": {name: found.settings.get(name) for name in (*topics.RULES, *_SHOWN)},
        "partitions": [
            {
                **partition._asdict(),
                "begins": found.begins[number],
                "ends": found.ends[number],
            }
            for number, partition in enumerate(found.topic.partitions)
        ],
        "problems": [problem._asdict() for problem in found.problems],
        "notes": found.notes,
    }


def _url(terminal: Terminal, url: str | None) -> str:
    return choose_log(terminal.common.log)[0] if url is None else url
