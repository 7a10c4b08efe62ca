#!/bin/sh
# Runs tests on the machine's own Redis and on each server of scripts/servers.sh in
# turn, and prints a table of what came of it. Usage: scripts/on-servers.sh
#
# SERVERS names those to run on ("own redis-6.0 …"), SUITES the packages, RACE=
# leaves out the race detector. The output of each run is kept in the folder that
# is named at the end. Exit codes: 0 nothing failed, 1 something did, 2 no server.
set -eu

suites=${SUITES-./source/redis/acl ./source/redis/doctor ./internal/agent:TestAgentWithTheLeastRights|TestAgentWarnsOfTooManyRights|TestAgentAsksSentinels ./lock ./lock/fenced ./release ./scanner ./source/redis/formats ./source/redis/releaser}
race=${RACE--race}

found="own -
$(scripts/servers.sh list)"
names=${SERVERS:-$(echo "$found" | cut -d ' ' -f 1)}
logs=$(mktemp -d)
table=$logs/table

for name in $names; do
	path=$(echo "$found" | sed -n "s/^$name //p")
	if [ -z "$path" ]; then
		echo "on-servers: there is no server $name: make servers fetches those of other versions" >&2
		exit 2
	fi
	if [ "$path" = - ]; then path=''; fi
	version=$("${path:-redis-server}" --version | sed 's/^\([A-Za-z]*\) server v=\([^ ]*\).*/\1 \2/')
	for suite in $suites; do
		package=${suite%%:*} run=${suite#"$package"}
		log=$logs/$name-$(echo "$package" | tr -c 'a-z\n' -).log
		echo "on-servers: $version: $package"
		# Only what failed is of interest here; the log has all.
		# shellcheck disable=SC2086 # No word where there is no race detector.
		LOCKSTEWARD_REDIS_SERVER=$path go test $race -count=1 -timeout 30m -v -run "${run#:}" "$package" >"$log" 2>&1 ||
			grep -E '^ *--- FAIL|^panic|^FAIL' "$log" || true
		awk -v version="$version" -v package="$package" '
			/^ *--- PASS/ { pass++ } /^ *--- FAIL/ { fail++ } /^ *--- SKIP/ { skip++ }
			/^(ok|FAIL)[ \t].*[ \t][0-9.]+s$/ { verdict = $1; took = $3 }
			END {
				if (verdict != "ok" && !fail) fail = "?"
				printf "%-15s %-17s %6d %6s %8d %9s\n", version, package, pass, fail + 0 ? fail : (fail == "?" ? fail : 0), skip, took
			}' "$log" >>"$table"
	done
done

printf '\n%-15s %-17s %6s %6s %8s %9s\n' server tests passed failed skipped time
cat "$table"
echo "on-servers: the outputs are in $logs"
! awk '$5 != "0" { bad = 1 } END { exit !bad }' "$table"
