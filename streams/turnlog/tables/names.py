"""The short keys that sessions have in SQL: `names` tells them, everywhere else they stand alone.

Sessions that are at work together then share the pages of every index, and a commit writes fewer.
"""

from __future__ import annotations

import sqlite3

CACHED = 65_536


class Names:
    """The keys that one connection has seen. What is committed never changes; call `forget` where
    a transaction that may have made some was rolled back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._keys: dict[str, int] = {}

    def find(self, session: str) -> int | None:
        """The key of a session, None where no record of it was ever stored."""
        key = self._keys.get(session)
        if key is None:
            found = self._connection.execute(
                "SELECT key FROM names WHERE session = ?", (session,)
            ).fetchone()
            if found is None:
                return None
            key = self._remember(session, found[0])
        return key

    def make(self, session: str) -> int:
        """The key of a session, which is new if need be; in a write transaction."""
        key = self.find(session)
        if key is None:
            cursor = self._connection.execute("INSERT INTO names (session) VALUES (?)", (session,))
            key = self._remember(session, cursor.lastrowid or 0)
        return key

    def forget(self) -> None:
        """Read all keys again."""
        self._keys.clear()

    def _remember(self, session: str, key: int) -> int:
        if len(self._keys) >= CACHED:
            self._keys.clear()
        self._keys[session] = key
        return key
