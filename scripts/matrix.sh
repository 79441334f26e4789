#!/bin/sh
# Run tests on the oldest supported releases of the neighbours instead of the newest. Arguments go to pytest.
# Argo CD 3.4 and 3.5 are not built: they need a nested module that the module proxy refuses. So Argo CD is
# the newest here too, and what we deliver is checked against the CRDs of all of them.
set -eu
cd "$(dirname "$0")/.."
export ORDERKIT_LAB="gitea=1.27.1 kube=1.35.4"
case " $* " in
  *" --collect-only "*) ;;
  *) scripts/lab.sh ;;
esac
exec scripts/test.sh --e2e --only-real "$@" tests/e2e/test_delivery_schemas.py
