"""Reports of results: tables as Markdown, LaTeX and CSV, plots as SVG, and a page of HTML."""
