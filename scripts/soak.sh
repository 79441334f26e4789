#!/bin/sh
# Run the tests with their full random counts, from a fresh seed that is printed. Parts, because the
# whole takes hours (docs/conformance.md says how long each takes): soak.sh [PART [ARGUMENTS]], else all.
# What needs a real system runs where that is installed: make lab, scripts/backstage.sh --front-end.
# The parts mutants (scripts/mutants.py) and node run only by their names.
set -eu
cd "$(dirname "$0")/.."
rendering="tests/conformance/render tests/conformance/forms"
crash=tests/crash
edit=tests/conformance/yamledit
forge="tests/faults tests/conformance/forge tests/e2e/test_real_gitea_orders.py"
counts=tests/component/test_story_counts.py
attacks="tests/security/test_four_eyes.py tests/security/test_review_bypasses.py
  tests/security/test_approval_attacks.py tests/security/test_forge_ownership.py
  tests/security/test_registration_races.py"
replicas="tests/component/replicas tests/crash/test_crash_replicas.py tests/e2e/shared_lab/with_replicas"
plans="tests/component/plans/test_plans_proved.py tests/e2e/test_plan_applied.py"

if scripts/lab.sh --check && [ -e .cache/backstage/frontend/.installed ]; then
  real=--e2e
else
  real=
  echo "soak: without real systems; for all: make lab, then scripts/backstage.sh --front-end"
fi
part=${1:-all}
[ $# -eq 0 ] || shift
case $part in
  mutants)
    scripts/test-tools.sh
    scripts/engines.sh
    exec .venv/bin/python scripts/mutants.py --count 200 "$@"
    ;;
  attacks)   # what CI tries on Gitea's dialect, on the others
    scripts/test-tools.sh
    for forge in github gitlab; do
      # shellcheck disable=SC2086  the paths are words
      scripts/test.sh --orderkit-forge $forge $attacks "$@"
    done
    exit
    ;;
  node)   # what CI has no time to build: make cluster leaves a node, make cluster-down nothing
    make cluster
    KUBECONFIG=.cache/standing/kubeconfig kubectl wait node/node --for=condition=Ready
    make cluster-down
    [ ! -e .cache/standing ] && [ ! -e /sys/class/net/orderkit0 ]
    exec scripts/test.sh --e2e tests/e2e/test_real_node.py tests/e2e/test_real_node_orders.py "$@"
    ;;
  all) paths=tests ;;
  rendering) paths=$rendering ;;
  crash) paths=$crash ;;
  edit) paths=$edit ;;
  forge) paths=$forge ;;
  plans) paths=$plans ;;
  counts) paths=$counts ;;
  replicas) paths=$replicas ;;
  rest)
    paths=tests
    for path in $rendering $crash $edit $forge $plans $counts $replicas; do
      paths="$paths --ignore=$path"
    done
    ;;
  *)
    echo "error: no part $part; parts: rendering, crash, edit, forge, plans, counts, replicas, attacks, node, rest, mutants" >&2
    exit 2
    ;;
esac
scripts/test-tools.sh
scripts/engines.sh
# shellcheck disable=SC2086  # the paths are words
exec scripts/test.sh --soak $real $paths "$@"
