#!/bin/sh
# build.sh GO FOLDER: take the CRDs of what the installed service is routed and watched by out of their
# modules: Gateway API and the Prometheus operator. Nothing is built.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
# from MODULE@VERSION FILE...
from() {
  module=$("$go" mod download -json "$1" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  shift
  for file in "$@"; do
    cp "$module/$file" "$to/"
  done
}
from sigs.k8s.io/gateway-api@v1.7.0 config/crd/standard/gateway.networking.k8s.io_httproutes.yaml
crds=example/prometheus-operator-crd/monitoring.coreos.com
from github.com/prometheus-operator/prometheus-operator@v0.85.0 ${crds}_servicemonitors.yaml ${crds}_prometheusrules.yaml
chmod -R u+w "$to"   # the module cache is read-only; what is copied may be removed again
