"""Lines are cut where the terminal ends, as rich would cut them."""

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from turnlog.cli.terminal import columns, fitted

PART = st.text(st.sampled_from("ab →日本é"), max_size=12)


@given(st.lists(PART | st.tuples(PART, st.just("bold")), max_size=5), st.integers(2, 40))
def test_a_line_is_cut_as_rich_cuts_it(parts: list[str | tuple[str, str]], width: int) -> None:
    expected = Text.assemble(*parts)
    expected.truncate(width, overflow="ellipsis")
    made = Text.assemble(*fitted(tuple(parts), width)).plain
    assert made == expected.plain
    assert columns(made) <= width
