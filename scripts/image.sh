#!/bin/sh
# Build the image of Orderkit's service and Jobs from Debian's packages and our wheels, without a registry:
# image.sh FOLDER writes orderkit.oci.tar, sbom.cdx.json and provenance.json into FOLDER.
# The same commit and packages give the same digests (docs/figures.md). Needs root, mmdebstrap and buildah
# (apt-get install mmdebstrap buildah), and the packages of requirements.lock from your index.
set -eu
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
release=bookworm python=python3.11   # the wheels' ABI: Debian's own Python

for program in mmdebstrap buildah; do
  if ! command -v $program >/dev/null 2>&1; then
    echo "error: the image needs $program; on Debian: apt-get install mmdebstrap buildah" >&2
    exit 1
  fi
done
if [ -n "$(git status --porcelain --untracked-files=no)" ] && [ "${ALLOW_CHANGES:-}" != 1 ]; then
  echo "error: the checkout differs from its commit, and provenance.json would be wrong; commit, or set ALLOW_CHANGES=1" >&2
  exit 1
fi
commit=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022

echo "image: Debian $release"
mmdebstrap --quiet --variant=essential --include=python3,ca-certificates,tzdata,libstdc++6 \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  $release "$work/root.tar"
mkdir "$root"
tar --extract --file "$work/root.tar" --directory "$root" --numeric-owner --exclude './dev/*'
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/* "$root"/var/log/* "$root"/tmp/*
chroot "$root" dpkg-query --show --showformat '${Package} ${Version} ${Architecture}\n' >"$work/debs"

echo "image: wheels"
mkdir "$work/source" "$work/wheels"
git archive "$commit" | tar --extract --directory "$work/source"
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$work/wheels" "$work"/source/libs/* "$work/source"
.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-compile \
  --target "$root/opt/orderkit" --requirement requirements.lock
.venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-index --no-compile \
  --target "$root/opt/orderkit" --upgrade "$work"/wheels/*.whl
rm -rf "$root/opt/orderkit/bin"
rm -rf "$root/opt/orderkit/kubernetes/aio"   # the client's other half, for asyncio: 66 MB
# where a wheel lay: a folder of this run
find "$root/opt/orderkit" -name direct_url.json -delete
find "$root/opt/orderkit" -name RECORD -exec sed -i '/direct_url.json/d' {} +
mkdir -p "$root/usr/local/bin"
cat >"$root/usr/local/bin/orderkit" <<'ENTRY'
#!/usr/bin/python3 -I
import sys

sys.path.insert(0, "/opt/orderkit")
from orderkit.cli.main import main

sys.exit(main())
ENTRY
chmod 755 "$root/usr/local/bin/orderkit"
# compiled once: the root is read-only, so each start would compile again
chroot "$root" $python -m compileall -q -j 1 -x /skeletons/ --invalidation-mode unchecked-hash /opt/orderkit

.venv/bin/python scripts/image_papers.py "$root/opt/orderkit" "$work/debs" "$commit" "$out"
find "$root" -xdev -print0 | xargs -0 touch --no-dereference --date "@$SOURCE_DATE_EPOCH"

echo "image: OCI"
store="--root $work/store --runroot $work/run --storage-driver vfs"
# shellcheck disable=SC2086  # the options are words
{
  made=$(buildah $store from scratch)
  mount=$(buildah $store mount "$made")
  cp --archive "$root/." "$mount/"
  touch --date "@$SOURCE_DATE_EPOCH" "$mount"
  buildah $store config --user 65532:65532 --workingdir /tmp --entrypoint '["/usr/local/bin/orderkit"]' \
    --env PATH=/usr/local/bin:/usr/bin:/bin --env PYTHONDONTWRITEBYTECODE=1 \
    --label org.opencontainers.image.revision="$commit" "$made"
  buildah $store commit --quiet --disable-compression=false --timestamp "$SOURCE_DATE_EPOCH" --format oci \
    "$made" "oci-archive:$work/orderkit.oci.tar:orderkit" >/dev/null
  buildah $store rm "$made" >/dev/null
}
mv "$work/orderkit.oci.tar" "$out/orderkit.oci.tar"
echo "image: $(du -m "$out/orderkit.oci.tar" | cut -f 1) MB in $out/orderkit.oci.tar"
tar --extract --to-stdout --file "$out/orderkit.oci.tar" index.json | tr -d ' \n' |
  sed 's/.*"digest":"\([^"]*\)".*/image: \1\n/'
