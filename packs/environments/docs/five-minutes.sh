#!/bin/sh
# The document's five-minute workflow: an environment from a file in Git, then its page.
#   five-minutes.sh ENV.YAML DIST        BUILD: the command that writes DIST (default: npm run build)
# Every line can be repeated; a pipeline that was cut goes on. docs/pipelines of Orderkit has it for GitHub,
# GitLab and Gitea.
set -eu
file=$1 dist=$2

order=unifiedenvironment-$(sed -n 's/^  environment: *//p' "$file")
code=0
orderkit order --file "$file" --change --no-wait || code=$?
test "$code" -eq 0 || test "$code" -eq 12   # 12: somebody has to agree
orderkit wait "$order" --for ready --timeout 20m
outputs=$(orderkit outputs "$order")
eval "$outputs"
${BUILD:-npm run build}
python -m environments.sync "$dist" "s3://$BUCKET_NAME"
echo "$order: $BACKEND_URL, and the page is in $BUCKET_NAME"
