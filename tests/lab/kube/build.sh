#!/bin/sh
# build.sh GO FOLDER: build etcd and the Kubernetes API server into FOLDER, and say what each cost.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"

# build NAME PACKAGE [LINKER FLAG...]
build() {
  name=$1 package=$2 begun=$(date +%s)
  shift 2
  CGO_ENABLED=0 "$go" build -trimpath -ldflags "-s -w $*" -o "$to/$name" "$package"
  echo "lab: $name built in $(($(date +%s) - begun)) s, $(du -m "$to/$name" | cut -f 1) MB"
}

version=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
stamp=k8s.io/component-base/version
build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver \
  -X "$stamp.gitVersion=$version" -X "$stamp.gitMajor=1" -X "$stamp.gitMinor=${minor%%.*}"
