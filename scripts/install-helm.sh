#!/bin/sh
# Builds Helm 3, the renderer of the chart, and decoders of three versions of Kubernetes' types into .cache/helm, from Go modules.
# Prints nothing if they are there. SKIP_HELM=1 skips them: their tests then pass without running, and say so. GO_MODULES=DIR keeps
# the modules and the compiled packages in DIR.
#
#   install-helm.sh            install what is missing or out of date
#   install-helm.sh --check    install nothing; fail if something is missing or out of date
set -eu
cd "$(dirname "$0")/.."

cache=$PWD/.cache/helm
sources=tests/helm
modules=${GO_MODULES:-$cache/modules}

say() { echo "install-helm: $*" >&2; }

# The version of Kubernetes that Helm assumes without a cluster, as its own build sets it.
assumed=
for package in chartutil lint/rules; do
    assumed="$assumed -X helm.sh/helm/v3/pkg/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$package.k8sVersionMinor=37"
done

go_build() {
    folder=$1
    shift
    (cd "$folder" && GOENV=off GO111MODULE=on GOFLAGS='-mod=readonly -modcacherw' GOTOOLCHAIN=local CGO_ENABLED=0 \
        GOPATH="$modules" GOCACHE="$modules/build" nice -n 1 go build -ldflags="-s -w $assumed" -o "$cache/" "$@") >&2
}

# $1: a version of k8s.io/api.
decoder() {
    folder=$cache/sources/$1
    mkdir -p "$folder"
    cp "$sources/kubernetes/main.go" "$folder/main.go"
    cp "$sources/kubernetes/$1.mod" "$folder/go.mod"
    cp "$sources/kubernetes/$1.sum" "$folder/go.sum"
    go_build "$folder" . && mv "$cache/kubernetes" "$cache/kubernetes-$1"
}

install() {
    if ! command -v go >/dev/null; then
        say "the tests of the chart need Go (on Debian and Ubuntu: apt-get install golang-go); SKIP_HELM=1 skips them"
        exit 1
    fi
    say "building Helm and the types of Kubernetes from Go modules (3 minutes)"
    for version in "$sources"/kubernetes/v*.mod; do
        decoder "$(basename "$version" .mod)" || failed
    done
    go_build "$sources" . helm.sh/helm/v3/cmd/helm || failed
    rm -rf "$cache/modules" "$cache/sources"
}

failed() {
    say "Helm could not be built (it needs Go 1.26 and the proxy of Go modules); SKIP_HELM=1 skips the tests of the chart"
    exit 1
}

if [ "${SKIP_HELM:-}" = 1 ]; then
    say "SKIP_HELM=1: the chart is NOT rendered, and manifests are NOT decoded into the types of Kubernetes"
    exit 0
fi
# An incomplete installation has no stamp.
stamp=$(cat "$sources"/*.go "$sources"/go.* "$sources"/kubernetes/* | cksum)
if [ "$(cat "$cache/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    if [ "${1:-}" = --check ]; then
        say ".cache/helm is missing or out of date: run scripts/install-helm.sh (make test does this), or skip its tests with"
        say "SKIP_HELM=1"
        exit 1
    fi
    rm -rf "$cache"
    mkdir -p "$cache"
    install
    echo "$stamp" >"$cache/stamp"
fi
