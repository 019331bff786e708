"""The store in a web browser, for ``fairlap serve``: read-only pages, downloads and a JSON API."""
