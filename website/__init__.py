"""The documentation site, made of the README and the pages in docs."""
