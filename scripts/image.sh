#!/bin/sh
# Builds the images of deploy/Dockerfile without a daemon, from static binaries: target/image has an OCI layout for each target, and an
# archive for `docker load` and `kind load image-archive` for each architecture. An architecture that cannot be had is skipped with a line.
#
# Exit code 3: none can be had here.
#
#   image.sh [ARCHITECTURE...]     amd64 and arm64 by default
set -eu
cd "$(dirname "$0")/.."

out=${CARGO_TARGET_DIR:-target}/image
tool=$PWD/.cache/image/image

say() { echo "image: $*" >&2; }

stamp=$(cat scripts/image/* | cksum)
if [ "$(cat "$tool.stamp" 2>/dev/null || true)" != "$stamp" ]; then
    command -v go >/dev/null || { say "this needs Go (on Debian and Ubuntu: apt-get install golang-go), or use docker build"; exit 1; }
    say "building the writer of images from Go modules (1 minute)"
    mkdir -p "$(dirname "$tool")"
    modules=${GO_MODULES:-$(dirname "$tool")/modules}
    (cd scripts/image && GOENV=off GOFLAGS='-mod=readonly -modcacherw' GOTOOLCHAIN=local CGO_ENABLED=0 GOPATH="$modules" \
        GOCACHE="$modules/build" nice -n 1 go build -ldflags='-s -w' -o "$tool" .) >&2
    rm -rf "$(dirname "$tool")/modules"
    echo "$stamp" >"$tool.stamp"
fi

# Architectures and their binaries.
[ $# -gt 0 ] || set -- amd64 arm64
for arch do
    shift
    status=0
    folder=$(scripts/build-static.sh "$arch") || status=$?
    case $status in
    0) set -- "$@" "$arch=$folder/weir" ;;
    3) say "SKIPPED $arch: it cannot be built here" ;;
    *) exit $status ;;
    esac
done
[ $# -gt 0 ] || { say "no architecture could be built"; exit 3; }

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
rm -rf "$out"
"$tool" --version "$version" --revision "$revision" --owner "${OWNER:-OWNER}" --out "$out" "$@"
