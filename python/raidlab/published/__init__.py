"""A run beside what others published: their figures, their sheets, their rules of choice.

Invariant: everything here reads runs and data files; how a study's figures are compared is data, never code.
"""
