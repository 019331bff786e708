"""The store of many machines: the same tables in PostgreSQL, in the schema ``fairlap``.

A race never waits for the server. It is recorded in the file of its machine, and sent when it has ended.
"""
