"""What the hosts of the demo work on: effects are counted by key, and never means never."""

import threading
from http.client import HTTPConnection
from typing import Any

import orjson
import pytest

from turnlog.cli.demo.receiver import Counted, Receiver


def send(receiver: Receiver, method: str, path: str, body: Any = None) -> Any:
    connection = HTTPConnection("127.0.0.1", receiver.port, timeout=10)
    connection.request(method, path, orjson.dumps(body))
    answer = orjson.loads(connection.getresponse().read())
    connection.close()
    return answer


def post(receiver: Receiver, tool: str, key: str = "k", number: int = 1) -> Any:
    return send(receiver, "POST", f"/{tool}", {"key": key, "try": number, "args": {}})


@pytest.mark.parametrize(
    ("tool", "effects"),
    [("read_gauge", 0), ("book_berth", 1), ("order_fuel", 1), ("send_notice", 2)],
)
def test_two_requests_with_one_key(tool: str, effects: int) -> None:
    with Receiver() as receiver:
        assert post(receiver, tool) == post(receiver, tool, number=2)
        assert receiver.counted(tool, "k") == Counted(2, effects, 0)
        post(receiver, tool, "other")
        assert receiver.keys(tool) == ["k", "other"]


def test_what_was_probed_and_never_happened_is_refused_until_the_next_try() -> None:
    with Receiver() as receiver:
        asked = "/order_fuel?key=k&try=2"
        assert send(receiver, "GET", asked) == {"happened": False}
        assert post(receiver, "order_fuel") == {"refused": "try 1 was given up"}
        assert receiver.counted("order_fuel", "k") == Counted(1, 0, 1)
        assert "result" in post(receiver, "order_fuel", number=2)
        assert send(receiver, "GET", asked)["happened"] is True
        assert receiver.counted("order_fuel", "k") == Counted(2, 1, 2)


def test_an_answer_that_is_held_back_comes_after_its_effect() -> None:
    with Receiver() as receiver:
        receiver.hold()
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(post(receiver, "send_notice")))
        caller.start()
        receiver.wait_for({"send_notice"}, lambda: None)
        assert receiver.counted("send_notice", "k") == Counted(1, 1, 0)
        assert answers == []
        receiver.release()
        caller.join()
        assert answers == [{"result": "sent to 12 ships"}]


def test_waiting_for_what_does_not_come_can_be_given_up() -> None:
    def no_use() -> None:
        raise TimeoutError

    with Receiver() as receiver, pytest.raises(TimeoutError):
        receiver.wait_for({"send_notice"}, no_use)
