#!/bin/sh
# build.sh GO FOLDER: build Gitea as its releases are into FOLDER, with the files it serves beside it (it
# has none inside).
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
version=$("$go" list -m -f '{{.Version}}' gitea.dev)
CGO_ENABLED=0 GOEXPERIMENT=jsonv2 "$go" build -trimpath -ldflags "-s -w -X main.Version=${version#v}" \
  -o "$to/gitea" gitea.dev
module=$("$go" list -m -f '{{.Dir}}' gitea.dev)
mkdir "$to/static"
cp -r "$module/templates" "$module/options" "$module/public" "$to/static/"
chmod -R u+w "$to/static"   # the module cache is read-only; what is copied may be removed again
