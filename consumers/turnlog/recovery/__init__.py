"""The recovery consumer: what a dead host left open, judged and told. This release only shows."""
