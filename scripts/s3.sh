#!/bin/sh
# Install the environments' tools and a server of the S3 API (moto), which their tests talk to, into .cache/s3: a
# virtual environment of its own, because botocore and Orderkit's Kubernetes client want different releases of one
# library. Quick and without a network when nothing changed since.
set -eu
cd "$(dirname "$0")/.."
tools=packs/environments/tools to=.cache/s3
python=${PYTHON:-python3}

mkdir -p .cache
exec 9>.cache/s3.lock
flock 9   # tests run side by side
wanted=$(cat $tools/requirements-test.lock $tools/pyproject.toml | cksum)
if [ "$(cat $to/.installed 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi
"$python" -m venv --clear $to
$to/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $tools/requirements-test.lock
$to/bin/pip install --quiet --disable-pip-version-check --no-deps --editable $tools
echo "$wanted" >$to/.installed
