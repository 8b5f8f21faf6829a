from typing import Any

class CreateTopicsRequest:
    def __init__(
        self, create_topic_requests: list[Any], timeout: int | None, validate_only: bool
    ) -> None: ...

class DescribeConfigsRequest:
    def __init__(self, resources: list[Any], include_synonyms: bool = False) -> None: ...
