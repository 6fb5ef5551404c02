"""How often intervals hold: each method on made-up values whose truth is known.

Invariants:

- A method sees the values only, through the function that everything else calls.
- Draws depend on the seed, the model and the size, not on how many processes share the work.
"""
