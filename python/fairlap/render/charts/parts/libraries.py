"""The packages that draw charts, and Vega, Vega-Lite and Vega-Embed as one script that a page can carry."""

from __future__ import annotations

import contextlib
from typing import Any

from fairlap.errors import NotAvailable
from fairlap.machine.files.atomic_files import write_atomically
from fairlap.machine.files.private_files import make_private_folder
from fairlap.machine.files.user_folders import kept_copies, work_cache
from fairlap.render.charts.parts.labels import chart_texts
from fairlap.render.charts.parts.look import Look


def altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise _missing(error) from None
    return altair


def vl_convert() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise _missing(error) from None
    return vl_convert


def _missing(error: ImportError) -> NotAvailable:
    return NotAvailable(f"charts need Altair and vl-convert ({error}): pip install 'fairlap[report]'")


_NOTICE = (
    "Vega {vega}, Vega-Lite {lite} and Vega-Embed {embed}, BSD 3-Clause, University of Washington Interactive Data Lab"
)
_PNG_SCALE = 2.0
STILL_FONT = "DejaVu Sans, Segoe UI, Helvetica, Arial, sans-serif"
_END = "\n/* whole */"  # a torn file lacks it


def vega_lite_version() -> str:
    """Return the newest version that vl-convert brings, such as ``6.4``."""
    return str(vl_convert().get_vegalite_versions()[-1])


def svg_of(spec: dict[str, Any]) -> str:
    """Without a browser. A control character in a text would end this process, not only the drawing."""
    svg: str = vl_convert().vegalite_to_svg(chart_texts(spec), vl_version=vega_lite_version())
    return svg


def drawn(spec: dict[str, Any], look: Look) -> str:
    """Draw a chart that holds its data, as an SVG on the paper of the theme."""
    title = {"color": look.ink, "subtitleColor": look.muted}
    config = look.config(STILL_FONT) | {"background": look.paper, "title": title}
    return svg_of(spec | {"config": config, "padding": 16})


def png_of(svg: str) -> bytes:
    png: bytes = vl_convert().svg_to_png(svg, scale=_PNG_SCALE)
    return png


def vega_script() -> str:
    """Bundling takes about two seconds, so the script is cached; a cache that fails is ignored."""
    convert, lite = vl_convert(), vega_lite_version()
    embed, vega = convert.get_vega_embed_version(), convert.get_vega_version()
    cached = work_cache() / "report" / f"vega-{vega}-lite-{lite}-embed-{embed}.js"
    for copy in kept_copies(cached):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            script = copy.read_text("utf-8")
            if script.endswith(_END):
                return script
    bundle = convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=lite)
    script = f"/* {_NOTICE.format(vega=vega, lite=lite, embed=embed)} */\n{bundle}{_END}"
    with contextlib.suppress(OSError):
        make_private_folder(cached.parent)
        write_atomically(cached, script.encode(), private=True)
    return script
