#!/bin/sh
# Builds the files of a release into dist/: an archive and a bill of materials for
# each platform, and SHA256SUMS. What it builds depends on the sources, the version
# and Go's version alone: two builds in different folders, on different machines,
# give the same bytes.
#
#   scripts/dist.sh [OS/ARCH]...
#
# VERSION, COMMIT, DATE (of the commit, RFC 3339) and SOURCE_DATE_EPOCH are those of
# git unless set; DIST is the folder (dist).
set -eu
cd "$(dirname "$0")/.."

from_git() { git -c safe.directory="$PWD" "$@" 2>/dev/null || true; }
: "${VERSION:=$(from_git describe --tags --always --dirty)}"
: "${VERSION:=devel}"
: "${COMMIT=$(from_git rev-parse HEAD)}"
: "${DATE=$(from_git log -1 --format=%cI)}"
: "${SOURCE_DATE_EPOCH:=$(from_git log -1 --format=%ct)}"
: "${SOURCE_DATE_EPOCH:=0}"
: "${DIST:=dist}"

if [ $# -eq 0 ]; then
	set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
fi
case "$VERSION$COMMIT$DATE" in
*[!A-Za-z0-9.:+_-]*)
	echo "dist: VERSION, COMMIT and DATE must be letters, digits or . : + _ -" >&2
	exit 2
	;;
esac

# Nothing of this machine may get into a binary.
unset GOEXPERIMENT GODEBUG GOAMD64 GOARM64
export CGO_ENABLED=0 GOWORK=off GOTOOLCHAIN=local GOENV=off
goflags='-trimpath -buildvcs=false -mod=readonly'
ldflags="-s -w -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE"

rm -rf "$DIST"
mkdir -p "$DIST"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

build() { GOFLAGS='' go build $goflags -ldflags "$ldflags" -o "$1" ./cmd/locksteward; }

# The completions of the shells come from the program itself.
GOOS='' GOARCH='' build "$work/here"
root="$work/root"
mkdir -p "$root/completions" "$root/systemd" "$root/grafana"
for shell in bash zsh fish powershell; do
	"$work/here" completion "$shell" >"$root/completions/locksteward.$shell"
done
cp LICENSE README.md CHANGELOG.md config.example.yaml "$root/"
cp deploy/systemd/* "$root/systemd/"
cp grafana/*.json "$root/grafana/"
for rules in grafana/*.yaml; do
	case "$rules" in *_test.yaml) ;; *) cp "$rules" "$root/grafana/" ;; esac
done

count=$#
for platform; do
	os=${platform%/*} arch=${platform#*/}
	out="$work/$os-$arch/locksteward"
	mkdir -p "${out%/*}"
	echo "dist: $platform" >&2
	if [ "$platform" = "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ]; then
		cp "$work/here" "$out"
	else
		GOOS=$os GOARCH=$arch build "$out"
	fi
	set -- "$@" "$platform=$out"
done
shift "$count"

GOFLAGS=-mod=readonly go build -C tools/release -trimpath -buildvcs=false -o "$work/release" .
"$work/release" -version "$VERSION" -epoch "$SOURCE_DATE_EPOCH" -out "$DIST" -root "$root" "$@"
echo "dist: $count platforms in $DIST/, $(du -sh "$DIST" | cut -f1)" >&2
