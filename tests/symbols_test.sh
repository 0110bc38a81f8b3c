#!/bin/bash
# symbols_test.sh NM LIBRARY HEADER...: the shared library exports the functions that the public headers mark with
# RG_API, all of them, and nothing else.
set -euo pipefail

nm=$1 library=$2
shift 2

promised=$(grep -hE '^RG_API ' "$@" | grep -oE 'rg_[a-z0-9_]+\(' | tr -d '(' | sort -u)
exported=$("$nm" --dynamic --defined-only --format=posix "$library" | cut -d' ' -f1 | sort -u)
[[ -n $promised ]] || { echo "no RG_API function found in $*" >&2; exit 1; }
diff <(echo "$promised") <(echo "$exported") || {
  echo "< is in the headers alone, > is exported alone" >&2
  exit 1
}
