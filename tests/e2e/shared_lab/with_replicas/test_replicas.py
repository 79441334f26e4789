"""What ``tests/component/replicas`` says of replicas, on a real Gitea, API server and Argo CD."""

from __future__ import annotations

from tests.component.replicas.test_clock_skew import (
    clock_ahead,
    test_an_order_lives_through_replicas_whose_clocks_differ,
)
from tests.component.replicas.test_network_cuts import (
    cuts,
    test_a_replica_that_is_cut_off_says_so_and_loses_and_doubles_nothing,
)
from tests.component.replicas.test_rolling_upgrade import (
    test_a_rolling_upgrade_under_load_fails_no_request_and_writes_everything_once,
)

__all__ = [
    "clock_ahead",
    "cuts",
    "test_a_replica_that_is_cut_off_says_so_and_loses_and_doubles_nothing",
    "test_a_rolling_upgrade_under_load_fails_no_request_and_writes_everything_once",
    "test_an_order_lives_through_replicas_whose_clocks_differ",
]
