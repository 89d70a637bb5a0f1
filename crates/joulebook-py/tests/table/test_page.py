"""The page docs/giul.md stands as the tests say it."""

import pytest

from . import page


def test_the_page_says_what_the_tests_hold(request):
    """docs/giul.md is made from the tests."""
    if not page.is_whole(request.config, request.session.items):
        pytest.skip("only a part of the table was collected")
    text = page.text(request.session.items)
    if request.config.getoption("--write-page"):
        page.PAGE.write_text(text)
    assert page.PAGE.read_text() == text, "docs/giul.md is not what the tests say; write it with --write-page"
