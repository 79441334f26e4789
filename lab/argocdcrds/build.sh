#!/bin/sh
# build.sh GO FOLDER: take the CRDs of the Argo CDs that we deliver to, and what they exclude from
# being watched, out of their modules. Nothing is built.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
argocd=github.com/argoproj/argo-cd/v3
for version in 3.1.7 3.4.10 3.5.4 3.6.1; do   # idpbuilder's, which its package raises; each supported line
  from=$("$go" mod download -json "$argocd@v$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  mkdir -p "$to/$version"
  cp "$from"/manifests/crds/*-crd.yaml "$from/manifests/base/config/argocd-cm.yaml" "$to/$version/"
done
chmod -R u+w "$to"   # the module cache is read-only; what is copied may be removed again
