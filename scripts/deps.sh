#!/bin/sh
# Installs what the tests need and the machine lacks; says nothing when all is
# there. Usage: scripts/deps.sh [redis|postgres|pgbouncer|mariadb|etcd|zookeeper|prometheus|alertmanager|chromium|cc|python|java|servers]...   (default: all but java and servers)
#
# servers are Redis and Valkey of other versions, for make servers: they are not
# installed but unpacked into a folder of the user, see scripts/servers.sh.
#
# As root it uses apt-get, on macOS Homebrew. It never asks for a password:
# without the right to install it prints the one command to run, and exits 1.
# Exit codes: 0 all there, 1 something is missing, 2 unknown argument.
set -eu

all='redis postgres pgbouncer mariadb etcd zookeeper prometheus alertmanager chromium cc python'

say() { printf 'deps: %s\n' "$*" >&2; }

have_any() {
	for program in "$@"; do
		if command -v "$program" >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

# Packages of PostgreSQL keep its server out of PATH: Debian, Red Hat, Homebrew
# on its two prefixes. internal/testkit/testpg looks into the same places.
postgres_places=${DEPS_POSTGRES_PLACES:-'/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin'}

have_postgres() {
	if have_any postgres && have_any initdb; then return 0; fi
	# shellcheck disable=SC2086 # One word per place, and each is a pattern.
	for place in $postgres_places; do
		if [ -x "$place/postgres" ] && [ -x "$place/initdb" ]; then return 0; fi
	done
	return 1
}

# Debian's packages belong to Debian's Python, which need not be the first in PATH.
pythons=${DEPS_PYTHONS:-'/usr/bin/python3 python3'}

have_python() {
	for python in $pythons; do
		if "$python" -c 'import redis.asyncio, dogpile.cache, rq, tooz, psycopg2' >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

# internal/testkit/testzk looks into the same places.
zookeeper_places=${DEPS_ZOOKEEPER_PLACES:-'/usr/share/java/zookeeper.jar /opt/homebrew/opt/zookeeper/libexec/lib/zookeeper-[0-9]*.jar /usr/local/opt/zookeeper/libexec/lib/zookeeper-[0-9]*.jar'}

have_zookeeper() {
	have_any java || return 1
	found=''
	# shellcheck disable=SC2086 # One word per place, and each is a pattern.
	for place in $zookeeper_places; do
		if [ -e "$place" ]; then found=yes; fi
	done
	[ -n "$found" ] || return 1
	# The locks of its Python library; Homebrew has none, the tests skip there.
	if [ "$(uname -s)" = Darwin ]; then return 0; fi
	for python in $pythons; do
		if "$python" -c 'import kazoo' >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

have_python_etcd() {
	for python in $pythons; do
		if "$python" -c 'import etcd3' >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

have() {
	case $1 in
	redis) have_any redis-server valkey-server && have_any redis-cli valkey-cli ;;
	postgres) have_postgres ;;
	mariadb) have_any mariadbd || [ -x "${DEPS_MARIADB:-/usr/sbin/mariadbd}" ] ;;
	pgbouncer) have_any pgbouncer || [ -x "${DEPS_PGBOUNCER:-/usr/sbin/pgbouncer}" ] ;;
	prometheus) have_any promtool && have_any prometheus ;;
	alertmanager) have_any alertmanager prometheus-alertmanager ;;
	chromium)
		have_any chromium chromium-browser google-chrome google-chrome-stable headless-shell ||
			[ -x '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome' ]
		;;
	cc) have_any cc gcc clang ;; # the race detector needs one
	# Locks of real Python libraries. Homebrew has none of them: the tests skip there.
	python) [ "$(uname -s)" = Darwin ] || have_python ;;
	zookeeper) have_zookeeper ;;
	etcd) have_any etcd && have_any etcdctl && { [ "$(uname -s)" = Darwin ] || have_python_etcd; } ;;
	# For docs/snippets/java alone, and 300 MB: for CI, and for who asks for it.
	java) have_any javac ;;
	servers) true ;; # looked after by scripts/servers.sh
	esac
}

apt_packages() {
	case $1 in
	redis) echo redis-server redis-tools ;;
	postgres) echo postgresql ;;
	pgbouncer) echo pgbouncer ;;
	mariadb) echo mariadb-server ;;
	prometheus) echo prometheus ;;
	alertmanager) echo prometheus-alertmanager ;;
	chromium) echo chromium ;;
	cc) echo gcc libc6-dev ;;
	python) echo python3 python3-redis python3-dogpile.cache python3-rq python3-tooz python3-psycopg2 ;;
	zookeeper) echo zookeeper python3-kazoo libcurator-recipes-java ;;
	etcd) echo etcd-server etcd-client python3-etcd3 ;;
	java) echo default-jdk-headless ;;
	esac
}

brew_packages() {
	case $1 in
	redis) echo redis ;;
	postgres) echo postgresql ;;
	pgbouncer) echo pgbouncer ;;
	mariadb) echo mariadb ;;
	prometheus) echo prometheus ;;
	alertmanager) echo alertmanager ;;
	chromium) echo google-chrome ;;
	cc) echo llvm ;;
	zookeeper) echo zookeeper ;;
	etcd) echo etcd ;;
	java) echo openjdk ;;
	esac
}

missing() {
	for dep in "$@"; do
		if ! have "$dep"; then printf '%s ' "$dep"; fi
	done
}

packages() { # packages apt|brew DEP...
	manager=$1
	shift
	list=''
	for dep in "$@"; do list="$list $("${manager}_packages" "$dep")"; done
	echo "${list# }"
}

# The tests bring their own servers: those of the packages must neither start
# now nor at the next boot.
policy=${DEPS_POLICY_FILE:-/usr/sbin/policy-rc.d}
made_policy=''

forbid_services() {
	if [ -e "$policy" ]; then return 0; fi
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	made_policy=yes
	chmod 755 "$policy"
}

allow_services() {
	if [ -n "$made_policy" ]; then rm -f "$policy"; fi
	made_policy=''
}

disable_services() {
	if ! [ -d /run/systemd/system ] || ! have_any systemctl; then return 0; fi
	for dep in "$@"; do
		case $dep in
		redis) systemctl --quiet disable redis-server >/dev/null 2>&1 || say 'cannot disable the service redis-server: look whether it is wanted' ;;
		postgres) systemctl --quiet disable postgresql >/dev/null 2>&1 || say 'cannot disable the service postgresql: look whether it is wanted' ;;
		mariadb) systemctl --quiet disable mariadb >/dev/null 2>&1 || say 'cannot disable the service mariadb: look whether it is wanted' ;;
		pgbouncer) systemctl --quiet disable pgbouncer >/dev/null 2>&1 || say 'cannot disable the service pgbouncer: look whether it is wanted' ;;
		etcd) systemctl --quiet disable etcd >/dev/null 2>&1 || say 'cannot disable the service etcd: look whether it is wanted' ;;
		prometheus) systemctl --quiet disable prometheus >/dev/null 2>&1 || say 'cannot disable the service prometheus: look whether it is wanted' ;;
		alertmanager) systemctl --quiet disable prometheus-alertmanager >/dev/null 2>&1 || say 'cannot disable the service prometheus-alertmanager: look whether it is wanted' ;;
		esac
	done
}

install_apt() {
	# shellcheck disable=SC2046 # One word per package.
	set -- "$@" -- $(packages apt "$@")
	deps=''
	while [ "$1" != -- ]; do
		deps="$deps $1"
		shift
	done
	shift
	trap allow_services EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	forbid_services
	export DEBIAN_FRONTEND=noninteractive
	say "apt-get install $*"
	apt-get update -qq >&2 || say 'apt-get update met an error; going on with the lists there are'
	apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >&2
	allow_services
	# shellcheck disable=SC2086 # One word per dependency.
	disable_services $deps
}

install_brew() {
	for dep in "$@"; do
		say "brew install $(brew_packages "$dep")"
		if [ "$dep" = chromium ]; then
			HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet --cask "$(brew_packages "$dep")" >&2
		else
			HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet "$(brew_packages "$dep")" >&2
		fi
	done
}

# too_old refuses a server that cannot take the settings of the tests.
too_old() {
	server=redis-server
	if ! have_any redis-server; then server=valkey-server; fi
	version=$("$server" --version) # "Redis server v=7.0.15 sha=…"
	version=${version#*v=}
	version=${version%% *}
	case ${version%%.*} in
	[0-6])
		say "$server $version is too old, the tests need 7.0 or newer: put a newer one first on PATH"
		return 0
		;;
	esac
	return 1
}

if [ $# -eq 0 ]; then
	# shellcheck disable=SC2086 # One word per dependency.
	set -- $all
fi
wants_redis='' wants_servers=''
for dep in "$@"; do
	case $dep in
	redis) wants_redis=yes ;;
	postgres | pgbouncer | mariadb | etcd | zookeeper | prometheus | alertmanager | chromium | cc | python | java) ;;
	servers) wants_servers=yes ;;
	*)
		say "unknown dependency '$dep': write any of $all java servers"
		exit 2
		;;
	esac
done

# What is unpacked for the user needs no right to install.
if [ -n "$wants_servers" ] && ! "$(dirname "$0")/servers.sh"; then exit 1; fi

lacking=$(missing "$@")
if [ -n "$lacking" ]; then
	# shellcheck disable=SC2086 # One word per dependency, here and below.
	if [ "$(uname -s)" = Darwin ] && have_any brew; then
		install_brew $lacking
	elif have_any apt-get && [ "$(id -u)" = 0 ]; then
		install_apt $lacking
	elif have_any apt-get; then
		say "missing: $lacking- run this, then try again:"
		say "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $(packages apt $lacking)"
		exit 1
	elif [ "$(uname -s)" = Darwin ]; then
		say "missing: $lacking- install Homebrew from https://brew.sh and run this, then try again:"
		say "  brew install $(packages brew $lacking)"
		exit 1
	else
		say "missing: $lacking- install them with the package manager of this system, then try again"
		exit 1
	fi
	lacking=$(missing "$@")
	if [ -n "$lacking" ]; then
		say "still missing after the installation: $lacking- put them on PATH"
		exit 1
	fi
fi
if [ -n "$wants_redis" ] && too_old; then exit 1; fi
