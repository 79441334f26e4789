#!/bin/sh
# build.sh GO FOLDER: build a real Composition function into FOLDER. Modules of most others are not served.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o "$to/function-auto-ready" github.com/crossplane/function-auto-ready
