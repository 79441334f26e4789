"""
Attacks: what strangers, form users, members and broken neighbours try, and what stops them.

docs/attacks.md names each test that proves one of its lines. Attacks that only a real forge, API
server or Argo CD decides are in ``tests/e2e/test_security_*.py``.
"""
