#!/bin/sh
# build.sh GO FOLDER: build kubelet, scheduler and kube-proxy into FOLDER, and say what each cost.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"

version=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
stamp=k8s.io/component-base/version
for name in kubelet kube-scheduler kube-proxy; do
  begun=$(date +%s)
  CGO_ENABLED=0 "$go" build -trimpath -o "$to/$name" \
    -ldflags "-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}" \
    "k8s.io/kubernetes/cmd/$name"
  echo "lab: $name built in $(($(date +%s) - begun)) s, $(du -m "$to/$name" | cut -f 1) MB"
done
