#!/bin/sh
# build.sh GO FOLDER: build Gitea into FOLDER, with the files it serves beside it (it has none inside).
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
version=$("$go" list -m -f '{{.Version}}' code.gitea.io/gitea)
tags='sqlite sqlite_unlock_notify'
CGO_ENABLED=1 "$go" build -trimpath -tags "$tags" -ldflags "-s -w -X main.Version=${version#v}" \
  -o "$to/gitea" code.gitea.io/gitea
module=$("$go" list -m -f '{{.Dir}}' code.gitea.io/gitea)
mkdir "$to/static"
cp -r "$module/templates" "$module/options" "$module/public" "$to/static/"
chmod -R u+w "$to/static"   # the module cache is read-only; what is copied may be removed again
