#!/bin/sh
# Runs each fuzz target of the module for a while, one after another. Go keeps
# an input that fails under testdata/fuzz. Usage: scripts/fuzz.sh [TIME] [PACKAGE]...
set -eu

time=${1:-10s}
if [ $# -gt 0 ]; then shift; fi
if [ $# -eq 0 ]; then set -- ./...; fi

packages=$(go list "$@")
count=0
for package in $packages; do
	dir=$(go list -f '{{.Dir}}' "$package")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go 2>/dev/null); do
		echo "go test -run '^\$' -fuzz '^$target\$' -fuzztime $time $package"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
		count=$((count + 1))
	done
done
echo "fuzz: $count targets ran for $time each and found nothing"
