#!/bin/sh
# Installs what the client libraries in clients/ need, and runs their tests with `weir` and the scripted server of the profile
# `tests`, or with $WEIR_BIN and $WEIR_SCRIPTED_BIN. SKIP_CLIENTS=1 skips all of them, and says so.
#
#   test-clients.sh                    build and test all languages
#   test-clients.sh test python        one language
#   test-clients.sh long               the scenarios that take minutes
#   test-clients.sh oldest             Python with the oldest libraries and frameworks that it supports
#   test-clients.sh lint [python]      linters, types and the checks of the packages
set -eu
cd "$(dirname "$0")/.."

task=${1:-test}
only=${2:-}

say() { echo "test-clients: $*" >&2; }

need() {
    command -v "$1" >/dev/null && return
    say "the tests need $1 (on Debian and Ubuntu: apt-get install $2); SKIP_CLIENTS=1 skips the tests of the clients"
    exit 1
}

# Installs the packages if the lock file is not the one of the last time.
typescript_install() {
    need node nodejs
    need npm npm
    stamp=$(cat package.json package-lock.json | cksum)
    [ "$(cat node_modules/.weir-stamp 2>/dev/null || true)" = "$stamp" ] && return
    say "installing the packages of clients/typescript"
    npm ci --silent --no-progress --ignore-scripts >&2
    echo "$stamp" >node_modules/.weir-stamp
}

typescript() (
    cd clients/typescript
    typescript_install
    npm run --silent build
    case $task in
        lint) npm run --silent lint && npm run --silent pack-check >&2 ;;
        long | oldest) ;;
        *) npm run --silent test ;;
    esac
)

# Makes the environment $1 if what it needs, the file $2, is not what it was the last time.
python_install() {
    need python3 "python3 python3-venv"
    stamp=$(cksum <"clients/python/$2")
    [ "$(cat ".cache/$1/.weir-stamp" 2>/dev/null || true)" = "$stamp" ] && return
    say "installing the packages of clients/python"
    rm -rf ".cache/$1"
    python3 -m venv ".cache/$1" >&2
    ".cache/$1/bin/pip" install --quiet --disable-pip-version-check -r "clients/python/$2" >&2
    echo "$stamp" >".cache/$1/.weir-stamp"
}

python() (
    if [ "$task" = oldest ]; then
        environment=clients-python-oldest
        python_install $environment requirements-oldest.txt
    else
        environment=clients-python
        python_install $environment requirements-tests.txt
    fi
    bin=$PWD/.cache/$environment/bin
    if [ "$task" = lint ]; then
        cd clients/python
        "$bin/ruff" format --check --quiet . && "$bin/ruff" check --quiet . && "$bin/python" -m mypy --no-error-summary src tests
        exit
    fi
    cd clients/python
    export PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1
    case $task in
        long) "$bin/python" -m pytest -p no:cacheprovider -m long ;;
        # protoc is that of the newest.
        oldest) "$bin/python" -m pytest -p no:cacheprovider -k "not stubs" ;;
        *) "$bin/python" -m pytest -p no:cacheprovider ;;
    esac
)

if [ "${SKIP_CLIENTS:-}" = 1 ]; then
    say "SKIP_CLIENTS=1: the client libraries are NOT tested"
    exit 0
fi
# With examples, as cargo otherwise builds the libraries again with other features.
if [ "$task" != lint ] && [ -z "${WEIR_BIN:-}" ]; then
    "${CARGO:-cargo}" build --quiet --profile tests --workspace --examples --bin weir-scripted --bin weir
fi
status=0
for language in python typescript; do
    [ -n "$only" ] && [ "$only" != "$language" ] && continue
    $language || status=1
done
exit $status
