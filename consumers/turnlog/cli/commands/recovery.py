"""Commands about what was left open: recover, pending, settle, rerun, decide, input, abort."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from turnlog.cli.guard import perform
from turnlog.cli.options import (
    Common,
    JsonOption,
    KafkaOption,
    LogOption,
    NoColorOption,
    QuietOption,
    SessionArgument,
    SessionsArgument,
    TablesOption,
    VerboseOption,
)

DispatchArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="DISPATCH", help="A dispatch's id, or as much as is unique.")
]
InOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--session", metavar="SESSION", help="Look in this session alone."),
]
NoteOption: TypeAlias = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="Why; kept with it.")
]
ByOption: TypeAlias = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who says so; by default you.")
]


def recover(
    sessions: SessionsArgument = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")
    ] = False,
    close: Annotated[
        bool,
        typer.Option(
            "--close",
            help="Answer open calls and end what they belong to; the default. For sessions that"
            " are named: parked and corrupted work, too.",
        ),
    ] = False,
    park: Annotated[
        bool, typer.Option("--park", help="Leave work as it is, and mark it for a person.")
    ] = False,
    after: Annotated[
        float,
        typer.Option(
            "--after", metavar="SECONDS", min=0, help="Leave sessions younger than that to a host."
        ),
    ] = 0.0,
    executor: Annotated[
        Literal["consumer", "host"],
        typer.Option("--for", help="With --dry-run: recovery itself, or a host with its tools."),
    ] = "consumer",
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Close what a dead host left open.

    Nothing is run again. A call without an answer gets one: unknown where it may have started, not
    started where that is proven. Sessions of hosts that are alive, and calls that wait for an
    approval, are left alone. Work that cannot be trusted is parked for a person.

    \b
    Examples:
      turnlog recover --dry-run
      turnlog recover
      turnlog recover 0638 --park
      turnlog recover --after 3600 --json
    """
    from turnlog.cli.recover import policy_of, recover_sessions, show_recovery
    from turnlog.cli.terminal import Terminal
    from turnlog.core.errors import UsageError

    named = sessions or []

    def work(terminal: Terminal) -> None:
        policy = policy_of(named, close=close, park=park, after_s=after)
        if dry_run:
            show_recovery(terminal, named, policy=policy, executor=executor)
            return
        if executor == "host":
            raise UsageError(
                "recover: --for host needs --dry-run: only a host has the tools to do it; nothing"
                " was changed"
            )
        recover_sessions(terminal, named, policy=policy)

    perform(Common(log, json, quiet, verbose, no_color, tables, kafka), work)


def pending(
    sessions: SessionsArgument = None,
    *,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """List what waits for somebody, and the command to say next.

    That is work that is open, parked or waits for an approval, and calls whose outcome nobody
    knows, with their arguments and what is known of them.

    \b
    Examples:
      turnlog pending
      turnlog pending 0638 --json
    """
    from turnlog.cli.pending import print_pending

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: print_pending(terminal, sessions or []),
    )


def settle(
    dispatch: DispatchArgument,
    *,
    status: Annotated[
        Literal["ok", "error"], typer.Option("--as", help="What became of the call.")
    ],
    note: NoteOption = None,
    by: ByOption = None,
    session: InOption = None,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Say what became of a call whose outcome nobody knows.

    \b
    Examples:
      turnlog settle 9f31 --as ok --note "the invoice is in the ledger"
      turnlog settle 9f31 --as error --by ann
    """
    from turnlog.cli.settle import settle as work

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: work(terminal, dispatch, status, session=session, by=by, note=note),
    )


def rerun(
    dispatch: DispatchArgument,
    *,
    note: NoteOption = None,
    by: ByOption = None,
    session: InOption = None,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Allow one start more of a call whose outcome nobody knows.

    The host that resumes the session does it. Refused where a late answer says that it happened.

    \b
    Examples:
      turnlog rerun 9f31 --note "no invoice in the ledger"
    """
    from turnlog.cli.settle import rerun as work

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: work(terminal, dispatch, session=session, by=by, note=note),
    )


def input_(
    session: SessionArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the agent is to read.")],
    *,
    delivery: Annotated[
        Literal["steer", "follow_up"],
        typer.Option("--delivery", help="Into the turn that runs, or after it."),
    ] = "follow_up",
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Queue a text for a session's agent to read.

    \b
    Examples:
      turnlog input 0638 "and then write the tests"
      turnlog input 0638 "leave the database alone" --delivery steer
    """
    from turnlog.cli.telling import send_input

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: send_input(terminal, session, text, delivery),
    )


def abort(
    session: SessionArgument,
    *,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Ask a session's host to stop what it is at.

    \b
    Examples:
      turnlog abort 0638
    """
    from turnlog.cli.telling import send_abort

    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: send_abort(terminal, session),
    )


def decide(
    session: SessionArgument,
    call: Annotated[
        str | None,
        typer.Argument(metavar="[CALL]", help="The call's id, where more than one waits."),
    ] = None,
    *,
    allow: Annotated[bool, typer.Option("--allow", help="It may run.")] = False,
    deny: Annotated[bool, typer.Option("--deny", help="It may not; the model is told.")] = False,
    by: ByOption = None,
    log: LogOption = None,
    tables: TablesOption = None,
    kafka: KafkaOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    no_color: NoColorOption = False,
) -> None:
    """Allow or deny a call that waits for a person. The first decision counts.

    \b
    Examples:
      turnlog pending
      turnlog decide 0638 --allow
      turnlog decide 0638 call_2 --deny --by ann
    """
    from turnlog.cli.deciding import send_decision

    if allow == deny:
        raise typer.BadParameter("say either --allow or --deny")
    perform(
        Common(log, json, quiet, verbose, no_color, tables, kafka),
        lambda terminal: send_decision(terminal, session, call, allow=allow, by=by),
    )
