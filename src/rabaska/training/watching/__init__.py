"""Zero-code watching: what a program that knows nothing of us does, counted, and its saves whole.

`first` is put first on the program's Python path; its `sitecustomize` is all that runs at the start
of a Python, and has the rest attached to PyTorch and its like when the program imports them.
Only the standard library is imported here, and nothing of ours beside this package.
"""
