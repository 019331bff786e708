"""Callables that are not trusted, on a GPU: arguments and answers go through memory that two processes use.

What a process enqueued goes on while the process is stopped, and its own account of when it was done is not believed.
So the referee, in its own context, puts the arguments there when the clock runs, and takes the answers before it stops
the clock. What is not in what it took was not answered.
"""
