#!/bin/bash
# in_venv.sh DIR: makes a virtual environment in DIR with PyTorch and what else requirements.txt lists, installs ropegrad
# into it as users do, and runs all Python tests there and the type checker. An environment that is there is used again.
# CMAKE_ARGS are the build's.
set -euo pipefail

venv=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -r python/tests/requirements.txt
"$venv/bin/python" -m pip install --quiet .

"$venv/bin/python" -B -m pytest -q
# The sources, then the package as it is installed, with the stub that the build wrote.
"$venv/bin/mypy" --cache-dir "$venv/mypy" python/ropegrad python/stubs
"$venv/bin/mypy" --cache-dir "$venv/mypy" -p ropegrad
