"""Sessions as pages: `record` reads what is kept of one, `tally` counts them all, `render` fills the templates.

A page is one file without script or network. Jinja2 escapes what is put into a template; what would steer a terminal or
hide from a reader is shown as an escape.
"""
