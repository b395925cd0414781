"""Tests of docs/python-api.md."""

import pytest

pytest.importorskip("griffe", reason="pip install griffe")

import api_page


def test_the_page_has_the_signatures_and_docstrings_of_the_package():
    assert api_page.PAGE.read_text() == api_page.page(), "docs/python-api.md is stale: python tests/api_page.py"
