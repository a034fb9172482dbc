"""Telling a template (Helm, Jinja, ERB, cookiecutter) from the language that it will become."""

from __future__ import annotations

import re

# What stands in quotes and GitHub's `${{ }}` is plain text to JSON, TOML and YAML: `"Hello {{name}}"` is no template.
# Each may lack its end: an expression that then begins anew at the next quote takes quadratic time.
_PLAIN = re.compile(rb"""\$\{\{.*?(?:\}\}|$)|"(?:[^"\\\n]|\\.)*"?|(?<!\w)'[^'\n]*'?""", re.MULTILINE)
_MARK = re.compile(rb"\{\{|\{%|<%")
# In code `{{` means too much; these mean nothing else.
_MARK_IN_CODE = re.compile(rb"^[ \t]*\{%.*%\}|\{\{ ?cookiecutter\.", re.MULTILINE)


def is_data_template(content: bytes) -> bool:
    """True if the mark of a template engine stands outside of quotes."""
    return _MARK.search(_PLAIN.sub(b"", content)) is not None


def is_code_template(path: bytes, content: bytes) -> bool:
    """True if a template engine has to fill in the name or the text of the code."""
    return b"{{" in path or _MARK_IN_CODE.search(content) is not None
