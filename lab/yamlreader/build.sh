#!/bin/sh
# build.sh GO FOLDER: build the program that reads YAML as Go does into FOLDER.
set -eu
go=$1 to=$2
cd "$(dirname "$0")"
CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o "$to/yamlreader" .
