"""Sphinx configuration: ``make docs``. Neither the build nor the pages need a network."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import commands  # noqa: E402
import gallery  # noqa: E402
import pictures  # noqa: E402

import eulerscan  # noqa: E402

project = "eulerscan"
author = "The eulerscan developers"
copyright = author
version = release = eulerscan.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
# Examples run when they have changed. `sphinx -D plot_gallery=0` runs none.
EXAMPLES = HERE.parent / "examples" / "gallery"
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "_made/gallery",
    "filename_pattern": gallery.runnable(EXAMPLES),
    "within_subsection_order": "gallery.Order",
    "image_scrapers": ("gallery.scrape",),
    "reset_modules": (),
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # its page would load scripts from the network
}
suppress_warnings = ["config.cache"]
myst_heading_anchors = 3

default_role = None
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
# As lists: a field has only one name, and arguments that share a meaning share a line.
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]
nitpicky = True

html_theme = "furo"
html_title = f"eulerscan {version}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

# Types of other libraries, and self-explanatory aliases.
nitpick_ignore = [
    ("py:class", "eulerscan.complexes.packed.Packed"),  # what kernels take
    ("py:class", "eulerscan.io.batch.Batch"),  # positions and complex
    ("py:class", "eulerscan._progress.Bar"),  # a progress bar of tqdm
    ("py:class", "The jumps that are not zero"),  # napoleon takes what is before a colon for a type
    ("py:mod", "eulerscan.variants"),  # its functions are documented as eulerscan.<name>
]
nitpick_ignore_regex = [
    ("py:.*", r"(torch|np|numpy|nn|data|matplotlib|distributed|dask|collections|typing|pathlib|os)\..*"),
    ("py:class", r"Tensor|Axes|Figure|Path|Callable|Sequence|Any|Literal|Module|Optimizer|Generator|Real|T"),
    (
        "py:class",
        r"Shape|Term|Start|OptimizerName|OptimizerFactory|StopReason|Norm|Normalize|Variant|Reduction|DivideBy|Pixels|Indices|Options|Epoch|Extend|Failure|Function|Method|Monotone|Values|Labels|Up|dict\[str|_Array",
    ),
]


_TOP = ("module", "class", "function", "exception", "data")  # not methods and attributes, whose names recur


def by_last_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve references by last name: docstrings say ``:class:`Complex```, as the code does."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    known = env.domains["py"].objects.items()
    found = [full for full, entry in known if full.rpartition(".")[2] == name and not entry.aliased and entry.objtype in _TOP]
    if len(found) != 1:
        return None
    node["reftarget"] = found[0]
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, content)


def as_plain_text(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Formulas of docstrings as text: the library that typesets them in a browser comes from the network."""
    text = re.sub(r":math:`([^`]*)`", r"*\1*", "\n".join(lines))
    if what in ("property", "attribute"):
        text = text.replace(": ", ", ", 1)  # Sphinx takes the text before a colon for a type
    for command, letter in ((r"\lambda", "λ"), (r"\sigma", "σ"), (r"\ ", " ")):
        text = text.replace(command, letter)
    lines[:] = text.split("\n")


def with_defaults(app: Any, what: str, name: str, thing: Any, options: Any, signature: str, returns: str) -> Any:
    """Signatures of dataclasses whose defaults are made by a function, which Sphinx cannot parse."""
    return (signature.replace("<factory>", "..."), returns) if signature and "<factory>" in signature else None


def make_files(app: Any) -> None:
    """Draw the pictures and write the help texts of all commands."""
    pictures.draw(HERE / "_made")
    commands.write(HERE / "_made")


def add_times(app: Any) -> None:
    """List the running times of the examples."""
    gallery.add_times(HERE / "_made" / "gallery" / "index.rst")


def setup(app: Any) -> None:
    app.connect("builder-inited", make_files)
    app.connect("builder-inited", add_times, priority=900)  # after the gallery is made
    app.connect("missing-reference", by_last_name)
    app.connect("autodoc-process-signature", with_defaults)
    app.connect("autodoc-process-docstring", as_plain_text, priority=100)
