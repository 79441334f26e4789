#!/bin/sh
# build.sh GO FOLDER: build etcd, the Kubernetes API server and its controllers into FOLDER, and say what
# each cost.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"

# build NAME PACKAGE [LINKER FLAG...]
build() {
  out=$1 package=$2 begun=$(date +%s)
  shift 2
  CGO_ENABLED=0 "$go" build -trimpath -ldflags "-s -w $*" -o "$to/$out" "$package"
  echo "lab: $out built in $(($(date +%s) - begun)) s, $(du -m "$to/$out" | cut -f 1) MB"
}

version=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
stamp=k8s.io/component-base/version
build etcd go.etcd.io/etcd/server/v3
for name in kube-apiserver kube-controller-manager; do
  build "$name" "k8s.io/kubernetes/cmd/$name" \
    -X "$stamp.gitVersion=$version" -X "$stamp.gitMajor=1" -X "$stamp.gitMinor=${minor%%.*}"
done
