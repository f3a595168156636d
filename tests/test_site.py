"""The pages of the documentation, which `make docs` builds with every warning an error before it runs this file."""

import inspect
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = Path(os.environ.get("SITE", ""))
pytestmark = pytest.mark.skipif("SITE" not in os.environ, reason="`make docs` builds the pages and looks at them")


def test_every_page_is_there_and_needs_no_network():
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > len([path for path in DOCS.rglob("*.md") if "_made" not in path.parts])
    for page in pages:
        text = page.read_text("utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"", text)
        outside = [address for pair in loaded for address in pair if re.match(r"(https?:)?//", address)]
        assert not outside, (page.name, outside)
        assert str(ROOT) not in text, f"{page.name} names a folder of this machine"


def test_no_argument_of_the_reference_becomes_a_list_and_no_constant_has_the_docstring_of_its_type():
    """Text of an argument that begins with a letter and a period is a numbered list in reStructuredText."""
    pages = list((SITE / "api").glob("*.html"))
    assert len(pages) > 15
    for page in pages:
        text = page.read_text("utf-8")
        assert "&lt;factory" not in text, page.name
        assert not re.findall(r"<ol class=\"(?:upper|lower)(?:alpha|roman)[^>]*>", text), page.name
        for kind in (tuple, dict, list, str, int, float):
            assert inspect.getdoc(kind).splitlines()[0] not in text, (page.name, kind.__name__)
