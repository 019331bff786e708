"""Callables that are not trusted: each in a sandboxed process that runs only while the clock runs.

The reference, the drawn inputs, the stamps and the results stay in the parent, out of their reach.
"""
