"""Statements that Arrow computes, in this process or in tasks."""
