#!/bin/sh
# Copy the layers that every pack has (gitops/root.yaml, gitops/apps) from the reference pack to the
# other packs of this repository; with --check: only say what differs. A pack's own layers stay.
set -eu
cd "$(dirname "$0")/.."
failed=0
for pack in packs/*/; do
  for file in gitops/root.yaml gitops/apps/*.yaml; do
    cmp -s "$file" "$pack$file" && continue
    if [ "${1:-}" = --check ]; then
      echo "$pack$file is not as $file: run scripts/layers.sh" >&2
      failed=1
    else
      cp "$file" "$pack$file"
      echo "copied   $pack$file"
    fi
  done
done
exit $failed
