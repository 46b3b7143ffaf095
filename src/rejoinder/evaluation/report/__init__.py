"""Results as tables and plots: Markdown, LaTeX, CSV, and one page of HTML."""
