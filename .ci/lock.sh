#!/usr/bin/env bash
# Writes requirements.lock: the versions of constraints.txt with the hashes of their files, for all platforms.
# torch is not in it: each machine takes the build that fits it (TORCH_INDEX). What its CPU build needs is.
set -euo pipefail
cd "$(dirname "$0")/.."
# those of `make install`
extras=$(sed -n "s/.*-e '\.\[\(.*\)\]'$/\1/p" Makefile)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
echo "torch; python_version < '3'" > "$work/overrides.txt"
printf 'networkx\nsympy\n' > "$work/of-torch.txt"
{
  echo "# Written by \`make lock\`: what \`make install\` installs with LOCKED=1, by SHA-256. Without torch."
  "${UV:-uv}" pip compile pyproject.toml "$work/of-torch.txt" --quiet --generate-hashes --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links --python-version 3.11.7 -c constraints.txt \
    --override "$work/overrides.txt" $(printf -- '--extra %s ' ${extras//,/ })
} > requirements.lock.new
mv requirements.lock.new requirements.lock
