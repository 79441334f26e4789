#!/bin/sh
# build.sh GO FOLDER: build Helm as its releases are into FOLDER.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
helm=helm.sh/helm/v3
version=$("$go" list -m -f '{{.Version}}' $helm)
minor=$("$go" list -m -f '{{.Version}}' k8s.io/client-go | cut -d . -f 2)
flags="-s -w -X $helm/internal/version.version=$version -X $helm/internal/version.metadata="
for package in pkg/chartutil pkg/lint/rules; do
  flags="$flags -X $helm/$package.k8sVersionMajor=1 -X $helm/$package.k8sVersionMinor=$minor"
done
CGO_ENABLED=0 "$go" build -trimpath -ldflags "$flags" -o "$to/helm" $helm/cmd/helm
