"""Owning a session: claims, the frame writer, and what counts as saved.

Over the log's port alone, so every adapter is served by the same code.
"""
