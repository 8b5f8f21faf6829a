"""The recovery consumer: what a dead host left open, judged, told, and closed or parked.

It has no tools, so it runs nothing again: that is for a host, which resumes.
"""
