#!/bin/sh
# Installs gRPC clients in other languages for the tests, a Valkey, the validator of Kubernetes manifests, and h2spec, into
# .cache/clients. Compilers come with apt. Prints nothing if everything is installed. SKIP_CLIENTS=1 skips all of them,
# SKIP_GO=1 skips Go, and SKIP_JAVA=1 skips Java. Their tests then pass without running, and say so.
#
#   install-clients.sh            install what is missing or out of date
#   install-clients.sh --check    install nothing; fail if something is missing or out of date
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/clients
wanted=tests/clients

check=${1:-}
gopath=/usr/share/gocode

say() { echo "install-clients: $*" >&2; }

need() {
    command -v "$1" >/dev/null && return
    say "the tests need $1 (on Debian and Ubuntu: apt-get install $2); SKIP_CLIENTS=1 skips the tests that need it"
    exit 1
}

# Whether step $1 was done for exactly these files. An incomplete installation has no stamp.
done_for() {
    name=$1
    shift
    stamp=$(cat "$@" | cksum)
    [ "$(cat "$cache/$name.stamp" 2>/dev/null || true)" = "$stamp" ]
}

# With --check, fails because step $1 is missing.
missing() {
    [ "$check" = --check ] || return 0
    say "$1 in .cache/clients is missing or out of date: run scripts/install-clients.sh (make test does this), or"
    say "skip the clients of other languages with SKIP_CLIENTS=1"
    exit 1
}

finish() { echo "$stamp" >"$cache/$1.stamp"; }

python_packages() {
    need python3 "python3 python3-venv"
    say "installing Python clients"
    rm -rf "$cache/python" "$cache/stubs.stamp"
    if ! python3 -m venv "$cache/python" >&2; then
        say "python3 -m venv failed (on Debian and Ubuntu: apt-get install python3-venv)"
        exit 1
    fi
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check -r "$wanted/requirements.txt" >&2
}

node_packages() {
    need node "nodejs npm"
    need npm npm
    say "installing Node clients"
    rm -rf "$cache/node"
    mkdir -p "$cache/node"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$wanted/.npmrc" "$cache/node/"
    (cd "$cache/node" && npm ci --silent --no-progress --ignore-scripts) >&2
}

# Options of protoc's plugins for Go: all protos $1 become one package of a module. `module`, if given: the folder of the
# module is left out of the paths of files.
go_package() {
    printf '%s' "${2:-}"
    for proto in $1; do printf ',M%s=example.com/you/weirv1' "$proto"; done
}

python_stubs() {
    rm -rf "$cache/stubs"
    mkdir -p "$cache/stubs"
    # shellcheck disable=SC2086 # the names of our own files have no spaces
    "$cache/python/bin/python" -m grpc_tools.protoc -Iproto \
        --python_out="$cache/stubs" --grpc_python_out="$cache/stubs" $1
}

# Runs go in folder $1, with the modules of its go.mod and no newer Go than the installed one. The cache of modules can
# be written to, so that it can be removed.
go_modules() {
    folder=$1
    shift
    (cd "$folder" && GOENV=off GO111MODULE=on GOFLAGS='-mod=readonly -modcacherw' GOTOOLCHAIN=local \
        GOPATH="$cache/modules" GOCACHE="$cache/modules/build" go "$@") >&2
}

# Builds the Go programs with the versions of tests/clients/go/go.mod. $1: the protos to make stubs of.
go_from_modules() {
    command -v go >/dev/null || return 1
    module=$cache/go/module
    mkdir -p "$module/client" "$module/protect"
    cp "$wanted/go/go.mod" "$wanted/go/go.sum" "$module/"
    cp "$wanted"/go/*.go "$module/client/"
    cp docs/examples/protect/*.go "$module/protect/"
    go_modules "$module" build -o "$cache/go/" google.golang.org/protobuf/cmd/protoc-gen-go \
        google.golang.org/grpc/cmd/protoc-gen-go-grpc || return 1
    options=$(go_package "$1" module=example.com/you)
    # shellcheck disable=SC2086 # the names of our own files have no spaces
    "$cache/python/bin/python" -m grpc_tools.protoc -Iproto \
        --plugin="$cache/go/protoc-gen-go" --go_out="$module" --go_opt="$options" \
        --plugin="$cache/go/protoc-gen-go-grpc" --go-grpc_out="$module" --go-grpc_opt="$options" $1 || return 1
    go_modules "$module" build -o "$cache/go/" ./client ./protect || return 1
    rm -f "$cache/go/protoc-gen-go" "$cache/go/protoc-gen-go-grpc"
}

# For machines that cannot reach the proxy of Go modules. Debian has packages with the sources of an older grpc-go and
# with the generators of stubs. golang/protobuf before 1.4 does not support the generated code of today.
go_packages() {
    set --
    command -v go >/dev/null || set -- "$@" golang-go
    command -v protoc >/dev/null || set -- "$@" protobuf-compiler
    [ -d /usr/include/google/protobuf ] || set -- "$@" libprotobuf-dev
    protoc-gen-go --version >/dev/null 2>&1 || set -- "$@" protoc-gen-go
    command -v protoc-gen-go-grpc >/dev/null || set -- "$@" protoc-gen-go-grpc
    [ -d "$gopath/src/google.golang.org/grpc" ] || set -- "$@" golang-google-grpc-dev
    [ -d "$gopath/src/google.golang.org/protobuf" ] || set -- "$@" golang-google-protobuf-dev
    [ -f "$gopath/src/github.com/golang/protobuf/proto/registry.go" ] ||
        set -- "$@" golang-github-golang-protobuf-1-5-dev
    [ $# -gt 0 ] || return 0
    . scripts/apt.sh
    if ! can_apt; then
        say "the tests need Go with grpc-go in $gopath (on Debian and Ubuntu: apt-get install $*);"
        say "SKIP_GO=1 skips the tests that need it"
        exit 1
    fi
    say "installing $* (up to 570 MB)"
    if ! apt_install "$@" >&2; then
        say "apt-get could not install $*; SKIP_GO=1 skips the tests that need it"
        exit 1
    fi
}

# Builds program $1 from folder $2.
go_build() {
    GOENV=off GO111MODULE=off GOFLAGS='' GOPATH="$cache/go:$gopath" GOCACHE="$cache/go/build" \
        go build -o "$cache/go/$1" "$2" >&2
}

# $1: the protos to make stubs of.
go_client() {
    rm -rf "$cache/go"
    mkdir -p "$cache/go/src"
    say "building the Go client"
    go_from_modules "$1" && return
    say "grpc-go of $wanted/go/go.mod could not be built (it needs Go 1.26 and the proxy of Go modules): Debian's is used"
    go_packages
    options=$(go_package "$1")
    # shellcheck disable=SC2086 # the names of our own files have no spaces
    if ! protoc -Iproto --go_out="$cache/go/src" --go_opt="${options#,}" --go-grpc_out="$cache/go/src" \
        --go-grpc_opt="${options#,}" $1 >&2 ||
        ! go_build client "./$wanted/go" || ! go_build protect ./docs/examples/protect; then
        say "the Go client could not be built (it needs Go 1.18 or later); SKIP_GO=1 skips its tests"
        exit 1
    fi
    rm -rf "$cache/go/build"
}

# Builds h2spec from Go modules, in the versions of its go.mod.
go_h2spec() {
    need go golang-go
    say "building h2spec"
    mkdir -p "$cache/go"
    if ! go_modules "$wanted/h2spec" build -o "$cache/go/h2spec" github.com/summerwind/h2spec/cmd/h2spec; then
        say "h2spec could not be built (it needs the proxy of Go modules); SKIP_GO=1 skips its tests"
        exit 1
    fi
}

# Builds a control plane for xDS from Go modules, in the versions of its go.mod.
go_ads() {
    need go golang-go
    say "building the control plane on go-control-plane (3 minutes)"
    mkdir -p "$cache/go"
    if ! go_modules "$wanted/ads" build -o "$cache/go/ads" .; then
        say "the control plane could not be built (it needs the proxy of Go modules); SKIP_GO=1 skips its tests"
        exit 1
    fi
}

java_packages() {
    set --
    command -v javac >/dev/null || set -- "$@" default-jdk-headless
    command -v mvn >/dev/null || set -- "$@" maven
    [ $# -gt 0 ] || return 0
    . scripts/apt.sh
    if ! can_apt; then
        say "the tests need Java and Maven (on Debian and Ubuntu: apt-get install $*); SKIP_JAVA=1 skips the tests that"
        say "need them"
        exit 1
    fi
    say "installing $* (up to 350 MB)"
    if ! apt_install "$@" >&2; then
        say "apt-get could not install $*; SKIP_JAVA=1 skips the tests that need it"
        exit 1
    fi
}

# Fetches grpc-java in the version of its pom.xml (31 MB with Maven's plugin), and compiles the client.
java_client() {
    java_packages
    say "building the Java client"
    rm -rf "$cache/java"
    mkdir -p "$cache/java"
    if ! mvn --batch-mode --quiet --strict-checksums --file "$wanted/java/pom.xml" \
        -Dmaven.repo.local="$cache/java/repository" dependency:copy-dependencies \
        -DoutputDirectory="$cache/java/lib" >&2 ||
        ! javac -d "$cache/java/classes" -cp "$cache/java/lib/*" "$wanted"/java/*.java >&2; then
        say "the Java client could not be built (it needs Java 17 and Maven's central repository); SKIP_JAVA=1 skips its test"
        exit 1
    fi
    rm -rf "$cache/java/repository"
}

if [ "${SKIP_CLIENTS:-}" = 1 ]; then
    say "SKIP_CLIENTS=1: clients of other languages, Valkey and Kubernetes manifests are NOT tested"
    exit 0
fi
if [ "${SKIP_GO:-}" = 1 ]; then
    say "SKIP_GO=1: Weir is NOT tested with Go's gRPC, nor with h2spec and go-control-plane"
fi
if [ "${SKIP_JAVA:-}" = 1 ]; then
    say "SKIP_JAVA=1: Weir is NOT tested with Java's gRPC"
fi
mkdir -p "$cache"
if ! done_for python "$wanted/requirements.txt"; then
    missing python
    python_packages
    finish python
fi
if ! done_for node "$wanted/package.json" "$wanted/package-lock.json"; then
    missing node
    node_packages
    finish node
fi
protos=$(cd proto && find weir -name '*.proto' | sort)
# shellcheck disable=SC2086
if ! (cd proto && done_for stubs $protos); then
    missing stubs
    python_stubs "$protos"
    stamp=$(cd proto && cat $protos | cksum)
    finish stubs
fi
# shellcheck disable=SC2086
if [ "${SKIP_GO:-}" != 1 ] && ! done_for go "$wanted"/go/* docs/examples/protect/*.go $(printf 'proto/%s ' $protos); then
    missing go
    go_client "$protos"
    finish go
    rm -f "$cache/h2spec.stamp" "$cache/ads.stamp"
fi
if [ "${SKIP_GO:-}" != 1 ] && ! done_for h2spec "$wanted"/h2spec/*; then
    missing h2spec
    go_h2spec
    finish h2spec
fi
if [ "${SKIP_GO:-}" != 1 ] && ! done_for ads "$wanted"/ads/*; then
    missing ads
    go_ads
    finish ads
fi
rm -rf "$cache/modules"
if [ "${SKIP_JAVA:-}" != 1 ] && ! done_for java "$wanted"/java/*; then
    missing java
    java_client
    finish java
fi
