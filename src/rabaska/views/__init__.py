"""What a person sees of a run, a plan, a check, a store or a cluster, decided once.

Frozen records of strings and numbers. The command line lays them out as text and prints the same
ones as JSON; a web page would lay out the same. How something looks is not decided here, but for
a `tone`, which each way of showing turns into a colour of its own.
"""
