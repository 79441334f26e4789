#!/bin/sh
# build.sh GO FOLDER: build Argo CD (one program for all its parts) into FOLDER, with its CRDs beside it.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
argocd=github.com/argoproj/argo-cd/v3
version=$("$go" list -m -f '{{.Version}}' $argocd)
CGO_ENABLED=0 "$go" build -trimpath -ldflags "-s -w -X $argocd/common.version=${version#v}" \
  -o "$to/argocd" $argocd/cmd
mkdir "$to/crds"
module=$("$go" list -m -f '{{.Dir}}' $argocd)
cp "$module"/manifests/crds/*-crd.yaml "$to/crds/"
cp "$module/hack/git-verify-wrapper.sh" "$to/"   # the repo-server runs it for every commit
chmod -R u+w "$to/crds"   # the module cache is read-only; what is copied may be removed again
chmod 755 "$to/git-verify-wrapper.sh"
