"""Rewriting files without changing rows: which files, in which groups, how, and how the result is committed.

`candidates` chooses files, `bins` packs them, `rewrite` writes the rows of a bin to new files, `rewritten` is the
result, `commits` commits it, `reconciliation` adapts it to concurrent commits, and `run` does all of it on threads,
within a budget. `plan` puts them together.
"""
