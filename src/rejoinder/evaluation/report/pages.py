"""HTML pages, made from the templates in `data/templates`."""

from collections.abc import Sequence

from rejoinder.errors import require
from rejoinder.evaluation.report.tables import Table


def render_page(
    template: str, tables: Sequence[Table], figures: Sequence[str], **values: object
) -> str:
    """Returns a page that needs no other file, from a template such as `results.html.j2`.

    The figures are SVG documents, which are not escaped. `values` are what else the template shows.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    require("report", "jinja2")
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rejoinder", "data/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    # inside HTML, an SVG has neither an XML declaration nor a document type
    inline = [Markup(svg[svg.index("<svg") :]) for svg in figures]  # noqa: S704 -- our own SVG
    return environment.get_template(template).render(tables=tables, figures=inline, **values)
