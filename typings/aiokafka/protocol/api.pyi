from typing import Any, Generic, TypeVar

T = TypeVar("T")

class Response:
    def __init__(self, *values: Any) -> None: ...

class RequestStruct:
    def __init__(self, *values: Any, **named: Any) -> None: ...

class Request(Generic[T]): ...
