"""A world small enough to try in full: every predicate up to depth 2, every object of at most three rows.

    python -m tests.world            the whole world, some ten million cases
    make world                       the same

`domains` says which values there are, `predicates` which predicates. `tabulate` lets Spark say of which rows each
predicate is true and which filter it sends. `objects` makes every object and its metadata. `judge` judges `evaluators`.
"""
