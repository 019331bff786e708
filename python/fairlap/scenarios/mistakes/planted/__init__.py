"""The planted mistakes: a file for each, in a folder for its kind.

A file has a function for each framework, which makes the mistake on the line that ends with ``# mistake`` and returns
what it computed, if it gets that far. ``control.py`` makes none. Besides:

- ``SIDES``: what contradicts each other: shapes, or words of which any names it, by ``|``; several ways to name a side
  are in a list. A mapping has them by function, and for the others under "".
- ``CLASH``: the two sizes of the shapes that do not fit.
- ``OPERATORS``: names of the operation.
- ``PART``: by function, the name that the user gave to the layer, node or weight.
- ``MEANT``: the answer that the user wanted, where there is one; a framework that computes it supports what is done.
- ``ABSENT``: by contestant or function, why there is no such mistake.
"""
