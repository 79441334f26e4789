#!/bin/sh
# Everything that can be judged without running the product. Runs all checks, fails if one does.
set -u
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=0

check() {
  name=$1; shift
  if output=$("$@" 2>&1); then
    printf '%-10s ok\n' "$name"
  else
    printf '%-10s FAILED\n%s\n' "$name" "$output"
    failed=1
  fi
}

check format $bin/ruff format --check
check lint $bin/ruff check
check types $bin/mypy
check types-2 $bin/pyrefly check --output-format=min-text
check layers $bin/lint-imports
check yaml $bin/yamllint --strict .
check locks scripts/lock.sh --check
check service $bin/python scripts/service_docs.py --check
check rendering $bin/python scripts/rendering_docs.py --check
check kit-check $bin/python scripts/kit_check_docs.py --check
check versions $bin/python scripts/versions_docs.py --check
check editing $bin/python scripts/editing_docs.py --check
check chart $bin/python scripts/chart.py --check
check delivery $bin/python scripts/delivery_svg.py --check
check picture $bin/python scripts/plan_svg.py --check
check kits $bin/orderkit kit generate --check
check agents $bin/orderkit kit generate --check --pack packs/agents
check envs $bin/orderkit kit generate --check --pack packs/environments
check workspaces $bin/orderkit kit generate --check --pack packs/workspaces
check clusters $bin/orderkit kit generate --check --pack packs/clusters
check layering scripts/layers.sh --check
check schema $bin/python scripts/kit_schema.py --check
$bin/python scripts/sizes.py || failed=1
$bin/python scripts/names.py
exit $failed
