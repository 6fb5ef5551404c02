"""fio: job files in and out, and its JSON results.

`reader` turns a job file into sections of lines, `options` says which lines are honoured, `cells` (with `places`,
`load` and `notes`) makes cells of the direct engine of them, `export` goes the other way, `result` reads what fio
measured.

Invariant: a round trip keeps the cell. What `export` writes without a comment that it is an approximation, the import
reads back as the same cell.

Reference: fio 3.33, its HOWTO and its parser; the words of a cell are in docs/internals/cell-contract.md.
"""
