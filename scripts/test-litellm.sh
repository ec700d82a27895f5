#!/bin/sh
# Tests the hooks of LiteLLM, that of clients/python and that of docs/examples, in the real proxy of LiteLLM with its mock.
# It uses `weir` and the scripted server of the profile `tests`, or $WEIR_BIN and $WEIR_SCRIPTED_BIN.
#
#   test-litellm.sh            beside the scripted server, and against the real `weir`: five calls, and 200 callers
#   test-litellm.sh scripted   beside the scripted server
set -eu
cd "$(dirname "$0")/.."

environment=$PWD/.cache/clients-litellm
wanted=clients/python/requirements-litellm.txt
stamp=$(cat "$wanted" proto/weir/v1/rate_limit.proto | cksum)
if [ "$(cat "$environment/.weir-stamp" 2>/dev/null || true)" != "$stamp" ]; then
    echo "test-litellm: installing LiteLLM" >&2
    rm -rf "$environment"
    python3 -m venv "$environment" >&2
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2
    mkdir "$environment/stubs"
    "$environment/bin/python" -m grpc_tools.protoc -Iproto --python_out="$environment/stubs" \
        --grpc_python_out="$environment/stubs" weir/v1/rate_limit.proto
    echo "$stamp" >"$environment/.weir-stamp"
fi
if [ -z "${WEIR_BIN:-}" ]; then
    "${CARGO:-cargo}" build --quiet --profile tests --workspace --examples --bin weir-scripted --bin weir
fi
tests=tests_litellm
[ "${1:-}" != scripted ] || tests=tests_litellm/test_scripted.py
cd clients/python
export PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1
exec "$environment/bin/python" -m pytest -p no:cacheprovider -s $tests
