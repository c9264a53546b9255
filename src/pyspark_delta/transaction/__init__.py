"""Changing a table: a draft of the change, and the attempts to commit it as the next version."""
