"""Equations become MathML while the site is built: a page needs no script, no font and no network to show them.

pymdownx.arithmatex finds ``$…$`` and ``$$…$$``; math-core translates. A command it does not know is a warning, which
the strict build refuses.
"""

from __future__ import annotations

import html
import logging
import re
from typing import Any

from math_core import LatexError, LatexToMathML

log = logging.getLogger("mkdocs.maths")
FOUND = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
translate = LatexToMathML(fancy_error=False)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    def rendered(found: re.Match[str]) -> str:
        tag, bracket, latex = found.groups()
        try:
            mathml = translate.convert_with_local_state(html.unescape(latex).strip(), displaystyle=bracket == "[")
        except LatexError as error:
            log.warning("%s: %s in the equation %s", page.file.src_uri, error, latex.strip())
            return found[0]
        return f'<{tag} class="maths">{mathml}</{tag}>'

    return FOUND.sub(rendered, content)
