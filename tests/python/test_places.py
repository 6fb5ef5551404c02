"""Lines of keys in TOML text."""

from __future__ import annotations

from raidlab.study.places import line_index, line_of, written

TEXT = '''\
name = "x"
description = """
not = "a key"
"""
[[array]]
name = "a"
[[array]]
name = "b"   # tree = "no key either"
[array.policy]
parity_read = "skip"
[load.hold]
target = { times_idle = 4, of = "a" }
'''


def test_keys_are_found_where_they_stand() -> None:
    lines = line_index(TEXT)
    assert lines["name",] == 1
    assert lines["array", 0, "name"] == 6
    assert lines["array", 1, "name"] == 8
    assert lines["array", 1, "policy", "parity_read"] == 10
    assert ("not",) not in lines


def test_what_is_missing_has_the_line_of_what_encloses_it() -> None:
    lines = line_index(TEXT)
    assert line_of(lines, ("array", 1, "tree")) == 7
    assert line_of(lines, ("load", "hold", "target", "of")) == 12
    assert line_of(lines, ("nowhere",)) is None


def test_what_looks_like_an_end_of_line_or_of_a_text_is_none_in_a_comment() -> None:
    for comment in ("# it's ''' one", '# and """ one', "# a\u2028b\u0085c", 'x = "a\u2028b"', 'x = \'# """\''):
        lines = line_index(f"{comment}\n{TEXT}{comment}\n[end]\nkey = 1\n")
        assert lines["array", 1, "policy", "parity_read"] == 11 and lines["end", "key"] == 16, comment


def test_places_are_written_as_people_read_them() -> None:
    assert written(("array", 2, "tree")) == "array[2].tree"
