"""Vega, Vega-Lite and Vega-Embed as one script that a page can carry."""

from __future__ import annotations

from fairlap.report.missing import vl_convert

_NOTICE = (
    "Vega {vega}, Vega-Lite {lite} and Vega-Embed {embed}, BSD 3-Clause, University of Washington Interactive Data Lab"
)


def vega_lite_version() -> str:
    """The newest that vl-convert brings, as ``6.4``."""
    return str(vl_convert().get_vegalite_versions()[-1])


def vega_script() -> str:
    convert = vl_convert()
    lite = vega_lite_version()
    notice = _NOTICE.format(vega=convert.get_vega_version(), lite=lite, embed=convert.get_vega_embed_version())
    bundle = convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=lite)
    return f"/* {notice} */\n{bundle}"
