#!/bin/sh
# Fetches servers of other versions than the machine's own, for `make servers`:
# Redis 6.0 and 8, Valkey 8 and 9, as Debian's suites have them. Nothing is
# installed and the system's apt is left alone: lists, packages and programs go
# to a folder of the user, and each server runs with the C library of its suite.
# Usage: scripts/servers.sh [fetch|list]   (default: fetch)
#
# fetch says nothing when all is there; list prints "NAME PATH" of those there.
# The mirror is that of the machine's apt sources. A folder may be given in
# LOCKSTEWARD_SERVERS. Exit codes: 0 all there, 1 some are not, 2 usage.
set -eu

place=${LOCKSTEWARD_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/locksteward/servers}

# Where it is not there, apt takes what it trusts in general.
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Each is NAME SUITE PACKAGE [SUITE OF ITS LIBRARIES]. Suites that move keep
# their name in place of a version.
servers() {
	cat <<-'END'
		redis-6.0 bullseye redis-server
		valkey-8.0 bookworm-backports valkey-server bookworm
		redis-8.0 trixie redis-server
		valkey-8.1 trixie valkey-server
		valkey-sid sid valkey-server
		redis-experimental experimental redis-server sid
	END
}

say() { printf 'servers: %s\n' "$*" >&2; }

# answers says that the program of a server is there and runs.
answers() { [ -x "$place/$1/redis-server" ] && "$place/$1/redis-server" --version >/dev/null 2>&1; }

list() {
	servers | while read -r name _; do
		if answers "$name"; then printf '%s %s\n' "$name" "$place/$name/redis-server"; fi
	done
}

# mirror prints where the machine gets Debian from.
mirror() {
	# shellcheck disable=SC2016 # The variable is apt's.
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/$' || true
}

# apt runs apt-get on lists and packages of its own, as if nothing were installed.
apt() { # apt FOLDER ARGUMENT...
	folder=$1
	shift
	apt-get -qq \
		-o Dir::Etc::sourcelist="$folder/suite.sources" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::Etc::preferences=/dev/null \
		-o Dir::State="$folder/state" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" \
		-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true "$@"
}

# fetch_one unpacks a server beside its place and moves it there when it runs.
fetch_one() { # fetch_one NAME SUITE PACKAGE [SUITE OF ITS LIBRARIES]
	name=$1 package=$3
	work=$place/.$name.$$
	rm -rf "$work"
	mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/tree"
	: >"$work/status"
	{
		printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$uri" "$2${4:+ $4}"
		if [ -e "$keyring" ]; then printf 'Signed-By: %s\n' "$keyring"; fi
	} >"$work/suite.sources"
	apt "$work" update >&2 || return 1
	# Of all that the package would need, what a program is linked to.
	wanted=$(apt "$work" -t "$2" --no-install-recommends --simulate install "$package" |
		sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' | grep -E '^(lib|lua-|redis-|valkey-)') || return 1
	# shellcheck disable=SC2086 # One word per package.
	(cd "$work/cache" && apt "$work" download $wanted >&2) || return 1
	for deb in "$work"/cache/*.deb; do dpkg-deb -x "$deb" "$work/tree" || return 1; done
	mkdir "$work/done"
	mv "$work/tree" "$work/done/tree"
	wrapper "$place/$name" "$work/done" "$package" >"$work/done/redis-server" || return 1
	chmod 755 "$work/done/redis-server"
	rm -rf "${place:?}/$name"
	mv "$work/done" "$place/$name"
	answers "$name"
}

# wrapper writes the program that starts a server with its own libraries.
wrapper() { # wrapper PLACE FOLDER PROGRAM
	loader=$(cd "$2" && find tree -name 'ld-linux*.so.*' | sort | head -n 1)
	libraries=$(cd "$2" && find tree -path '*/lib/*' -name '*.so.*' | sed 's|/[^/]*$||' | sort -u |
		while read -r dir; do printf '%s:' "$1/$dir"; done)
	[ -n "$loader" ] && [ -e "$2/tree/usr/bin/$3" ] || return 1
	# Redis 6.0 of Debian loads the libraries of its scripts from Lua's path.
	lua=$(cd "$2" && find tree -path '*/lua/5.1' -type d | grep '/lib/' | head -n 1)
	printf '#!/bin/sh\nLUA_CPATH="%s/?.so" exec' "$1/$lua"
	printf ' "%s" --library-path "%s" "%s" "$@"\n' "$1/$loader" "${libraries%:}" "$1/tree/usr/bin/$3"
}

fetch() {
	lacking=$(servers | while read -r name _; do answers "$name" || printf '%s ' "$name"; done)
	if [ -z "$lacking" ]; then return 0; fi
	for tool in apt-get dpkg-deb; do
		if ! command -v "$tool" >/dev/null 2>&1; then
			say "missing: $lacking- they are packages of Debian, and this system has no $tool"
			return 1
		fi
	done
	uri=$(mirror)
	if [ -z "$uri" ]; then
		say "missing: $lacking- no apt source of this machine is a mirror of Debian"
		return 1
	fi
	mkdir -p "$place"
	failed=''
	for name in $lacking; do
		say "fetches $name to $place"
		# shellcheck disable=SC2046 # One word per field.
		set -- $(servers | grep "^$name ")
		if ! fetch_one "$@"; then failed="$failed $name"; fi
		rm -rf "$place/.$name.$$"
	done
	if [ -n "$failed" ]; then
		say "could not be fetched, or do not run here:$failed"
		return 1
	fi
}

case ${1:-fetch} in
fetch) fetch ;;
list) list ;;
*)
	say "unknown word '$1': write fetch or list"
	exit 2
	;;
esac
