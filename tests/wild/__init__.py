"""
What other people bring: XRDs, templates, pushes, operations by hand, commands with typing errors.

Each test states what the author of such a thing sees and what it does to the order. The material
is our own, with the traits of public material. What only a real forge or Argo CD decides is in
``tests/e2e/test_wild_*.py``.
"""
