#!/bin/sh
# Run a real Backstage on the embedded platform; with --front-end its forms in the browser too.
set -eu
cd "$(dirname "$0")/.."
case " $* " in
  *" --front-end "*) scripts/backstage.sh --front-end ;;
  *) scripts/backstage.sh ;;
esac
scripts/plugins.sh --pack
exec .venv/bin/python -m lab.portal "$@"
