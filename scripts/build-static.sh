#!/bin/sh
# Builds the program as deployed (profile `dist`) for an architecture, amd64 or arm64, as one static binary on musl, and prints its
# path. C is compiled by zig (PyPI's ziglang, in .cache/zig), which compiles for every architecture. Exit code 3: the target or zig
# cannot be had here, and the reason is on stderr.
#
#   build-static.sh amd64
set -eu
cd "$(dirname "$0")/.."

arch=$1
cargo=${CARGO:-cargo}
cache=${ZIG_CACHE:-$PWD/.cache/zig}
version=0.15.1

say() { echo "build-static: $*" >&2; }
absent() { say "$*"; exit 3; }

case $arch in
amd64) machine=x86_64 flags= ;;
# Calls of atomics by name would need libgcc.
arm64) machine=aarch64 flags=-mno-outline-atomics ;;
*) say "unknown architecture $arch: amd64 or arm64"; exit 2 ;;
esac
target=$machine-unknown-linux-musl

if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    rustup target add "$target" >&2 || absent "no Rust for $target: rustup target add $target failed"
fi
if [ "$(cat "$cache/version" 2>/dev/null || true)" != "$version" ]; then
    rm -rf "$cache"
    python3 -m venv "$cache" >&2 && "$cache/bin/pip" install --quiet --disable-pip-version-check "ziglang==$version" >&2 ||
        absent "no C compiler for $target: pip install ziglang==$version failed"
    echo "$version" >"$cache/version"
fi

# The compilers under names of one word. cc gives the target of Rust, which zig spells otherwise.
tools=$cache/$arch
mkdir -p "$tools"
cat >"$tools/cc" <<END
#!/bin/sh
for word do
    shift
    case \$word in --target=*) ;; *) set -- "\$@" "\$word" ;; esac
done
exec "$cache/bin/python" -m ziglang cc -target $machine-linux-musl -fno-sanitize=undefined $flags "\$@"
END
printf '#!/bin/sh\nexec "%s/bin/python" -m ziglang ar "$@"\n' "$cache" >"$tools/ar"
chmod +x "$tools/cc" "$tools/ar"

variable=$(echo "$target" | tr a-z- A-Z_)
name=$(echo "$target" | tr - _)
# Rust brings musl and its start files along: only a linker is needed.
env "CC_$name=$tools/cc" "AR_$name=$tools/ar" "CARGO_TARGET_${variable}_LINKER=rust-lld" \
    nice "$cargo" build --profile "${PROFILE:-dist}" --locked ${BIN_ARGS:---bin weir} --target "$target" >&2
echo "${CARGO_TARGET_DIR:-target}/$target/${PROFILE:-dist}"
