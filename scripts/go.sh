#!/bin/sh
# Print the path of a Go that is not older than go.sh VERSION. If there is only an older one (Debian's
# package will do), fetch the wanted release with it: Go's toolchain is a Go module too.
set -eu
cd "$(dirname "$0")/.."
oldest=$1 release=1.27.4 own=$PWD/.cache/go

# fits GO: is it there, and new enough?
fits() {
  found=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  printf 'go%s\n%s\n' "$oldest" "$found" | sort --version-sort --check=silent
}

for go in go /usr/local/go/bin/go "$own/bin/go"; do
  if fits "$go"; then
    command -v "$go"
    exit 0
  fi
done

if ! command -v go >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends golang-go >/dev/null
fi
if ! command -v go >/dev/null 2>&1; then
  echo "error: this needs Go $oldest or newer, or any older Go (Debian: apt-get install golang-go)" >&2
  echo "       with which it fetches Go $release as a module into .cache" >&2
  exit 1
fi
echo "go: fetching Go $release as a module" >&2
module=golang.org/toolchain@v0.0.1-go$release.$(go env GOOS)-$(go env GOARCH)
(cd / && GOFLAGS='' GO111MODULE=on go mod download "$module") >&2
mkdir -p .cache
rm -rf "$own"
cp -r "$(go env GOMODCACHE)/$module" "$own"
chmod -R u+w "$own"
chmod +x "$own"/bin/* "$own"/pkg/tool/*/*   # a module's files carry no modes
fits "$own/bin/go"
echo "$own/bin/go"
