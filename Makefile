# Each target is a line that can be typed by hand as well. `make` alone lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE     ?= $(shell git log -1 --format=%cI 2>/dev/null)
LDFLAGS  := -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
FUZZTIME ?= 10s
CHAOSTIME ?= 10m
CHAOSSEED ?= 1
SOAKTIME ?= 30m
ALERTKILLS ?= 1000
TAKEOVERS ?= 200
RACES ?= 100000
# What the tests need beside Go; see scripts/deps.sh. With CI set nothing is skipped,
# nor the one test that needs a Java compiler (300 MB).
TESTDEPS ?= redis postgres pgbouncer mariadb etcd zookeeper prometheus alertmanager chromium cc python $(if $(CI),java)

GOFUMPT     := go tool -modfile=tools/gofumpt/go.mod gofumpt
STATICCHECK := go tool -modfile=tools/staticcheck/go.mod staticcheck -checks inherit,ST1000,ST1020,ST1021,ST1022
# Packages with golden files define the flag -update.
GOLDEN       = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=bench --exclude-dir=deploytest '"update"' .)))
RULES        = $(filter-out %_test.yaml,$(wildcard grafana/*.yaml))
RULETESTS    = $(wildcard grafana/*_test.yaml)

.PHONY: help
help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Builds bin/locksteward with its version.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/locksteward ./cmd/locksteward

.PHONY: test
test: deps ## Runs all tests under the race detector; installs what they need if it is missing.
	@# One package at a time: many tests bound how long something takes.
	go test -race -p 1 -timeout 30m ./...

.PHONY: test-live
test-live: deps ## Takes locks with the real Go and Node libraries that are not modules of this one; needs node and npm.
	cd source/redis/formats/live && go test -race ./...
	cd source/sql/live && go test -race ./...

.PHONY: test-grafana
test-grafana: ## Checks the dashboards with Grafana's own npm packages in Chromium, and its schema; needs node and npm (600 MB, fetched once).
	@scripts/deps.sh chromium
	cd test/grafana && go vet ./... && go test -count=1 -timeout 20m ./...

.PHONY: test-short
test-short: ## Runs the tests that need no server.
	go test -short ./...

.PHONY: lint
lint: lint-format lint-vet lint-staticcheck lint-fix lint-mod lint-alerts lint-shell ## Checks format, vet, staticcheck, modernisers, go.mod, alert rules and scripts.

.PHONY: lint-format
lint-format:
	@out=$$($(GOFUMPT) -l .) || exit 1; if [ -n "$$out" ]; then printf 'not formatted, run make fmt:\n%s\n' "$$out"; exit 1; fi

.PHONY: lint-vet
lint-vet:
	go vet ./...
	@for module in bench source/redis/formats/live source/sql/live test/grafana; do echo "cd $$module && go vet ./..."; (cd $$module && go vet ./...) || exit 1; done

.PHONY: lint-staticcheck
lint-staticcheck:
	@echo staticcheck ./...
	@$(STATICCHECK) ./...

.PHONY: lint-fix
lint-fix:
	go fix -diff ./...

.PHONY: lint-mod
lint-mod:
	go mod tidy -diff

.PHONY: lint-alerts
lint-alerts:
	@scripts/deps.sh prometheus
	$(if $(RULES),promtool check rules $(RULES))
	$(if $(RULETESTS),promtool test rules $(RULETESTS))

.PHONY: lint-shell
lint-shell:
	sh -n scripts/deps.sh && sh -n scripts/fuzz.sh && sh -n scripts/dist.sh && sh -n scripts/servers.sh && sh -n scripts/on-servers.sh && sh -n deploy/compose/secrets.sh && bash -n .ci/run

.PHONY: fmt
fmt: ## Formats the code and applies the modernisers of go fix.
	$(GOFUMPT) -w .
	go fix ./...

.PHONY: golden
golden: ## Rewrites the golden files, then tests the packages that have them.
	$(if $(GOLDEN),go test $(GOLDEN) -update)
	$(if $(GOLDEN),go test $(GOLDEN))

.PHONY: bench
bench: ## Runs the benchmarks, then those of bench/ beside other libraries.
	@scripts/deps.sh redis
	go test -run '^$$' -bench . -benchmem ./...
	@if [ -f bench/go.mod ]; then cd bench && go test -run '^$$' -bench . -benchmem -timeout 30m ./...; fi

.PHONY: fuzz
fuzz: ## Fuzzes each fuzz target for FUZZTIME (10s).
	scripts/fuzz.sh $(FUZZTIME)

# What the suite is and shows: docs/security.md.
SECURITYFUZZ = ./alert ./class ./config ./console ./source/redis/formats ./exporter ./source/redis/connect ./source/zookeeper ./internal/recording ./internal/users ./lock/record ./rules ./rules/expr

.PHONY: security
security: ## Runs the security suite of docs/security.md: rights, secrets, hostile names, forged requests, roles, addresses, fuzz seeds, licences.
	@scripts/deps.sh redis cc
	go test -race -count=1 ./source/redis/acl ./internal/signin
	go test -race -count=1 -run 'TestSecret|TestKeyEncoding' .
	go test -race -count=1 -run 'TestNoTokenAnywhere' ./release
	go test -race -count=1 -run 'TestInnards|TestNamesOfInnards|TestOddWays|TestPermit|TestNoSecret|TestBadSecrets|TestAGigabyte|TestADripping|TestHostile' ./alert
	go test -race -count=1 -run 'TestHostileLabelValues|TestNoKeyOrToken' ./exporter
	go test -race -count=1 -run 'TestAccessTable|TestDoorOfEveryRoute|TestOtherSites|TestWhoMayDoWhat|TestNobodyGetsIn' ./console
	go test -count=1 -timeout 20m -run 'TestHostileNames' ./test/endtoend -security.all
	go test -count=1 -timeout 20m -run 'TestSecretsShowNowhere|TestSecretsOfAllKeys' ./cmd/locksteward -security.all
	go test -count=1 -run '^Fuzz' $(SECURITYFUZZ)
	$(MAKE) licenses

.PHONY: licenses
licenses: ## Checks that every module that is compiled has a licence of the list in tools/licenses.
	go -C tools/licenses test .
	go -C tools/licenses run . ../..

.PHONY: vulnerabilities
vulnerabilities: ## Looks for known vulnerabilities of the modules in use; asks a database on the internet.
	go tool -modfile=tools/govulncheck/go.mod govulncheck ./...

.PHONY: bench-locks
bench-locks: ## Measures lock/ beside redsync, redislock and rueidislock; writes bench/RESULTS.md (about 7 min, on a quiet machine).
	@scripts/deps.sh redis
	cd bench && go run ./locks -markdown RESULTS.md

.PHONY: bench-agent
bench-agent: ## Measures sweep, application beside the agent, its size, its scrapes and its watch; writes bench/RESULTS.md (about 24 min, on a quiet machine).
	@scripts/deps.sh redis
	cd bench && go test . -run '^$$' -bench 'Sweep1M|Application|Agent1M|Scrape100k' -benchtime 1x -timeout 40m -results RESULTS.md
	cd bench && go test ./watch -run '^$$' -bench Watch -benchtime 1x -timeout 20m -results ../RESULTS.md

.PHONY: bench-stores
bench-stores: ## Measures a sweep of PostgreSQL, etcd and ZooKeeper; writes bench/RESULTS.md (about 2 min, on a quiet machine).
	@scripts/deps.sh postgres etcd zookeeper
	cd bench && go test . -run '^$$' -bench BenchmarkStores -benchtime 1x -results RESULTS.md

.PHONY: bench-alerts
bench-alerts: ## Measures how alerts are accepted, delivered, taken up after a restart, and what a storm of them takes (about 5 min, on a quiet machine).
	@scripts/deps.sh redis postgres
	go test ./store -run '^$$' -bench 'BenchmarkEvents|BenchmarkStorm|BenchmarkOneOrdering' -benchtime 2s
	go test ./test/alertchaos -run '^$$' -bench . -benchtime 1x -timeout 20m

.PHONY: chaos
chaos: ## Breaks servers, networks and processes under lock/ for CHAOSTIME (10m), by the schedule of CHAOSSEED (1); races releases 100,000 times; has replicas take over from each other TAKEOVERS (200) times; kills agents that send alerts ALERTKILLS (1000) times.
	@scripts/deps.sh redis cc
	go test -race -count=1 -timeout 0 -v -run TestLong ./lock/chaos -chaos.duration=$(CHAOSTIME) -chaos.seed=$(CHAOSSEED)
	go test -race -count=1 -timeout 0 -v -run 'TestRacesOfEveryLibrary|TestBlindDeleteFailsTheRaces' ./source/redis/releaser -release.races=100000
	go test -count=1 -timeout 0 -v -run TestTakeOvers ./test/takeover -takeover.faults=$(TAKEOVERS)
	go test -race -count=1 -timeout 0 -v -run 'TestKillsLoseNoAlert|TestControlWithoutOutbox' ./test/alertchaos -alertchaos.kills=$(ALERTKILLS)

.PHONY: races
races: ## Races releases against new holds RACES (100000) times on one Redis server, a Sentinel deployment, a Cluster, etcd, ZooKeeper, PostgreSQL and MariaDB.
	@scripts/deps.sh redis etcd zookeeper postgres mariadb
	go test -race -count=1 -timeout 0 -v -run 'TestConformance.*/a_release_frees_one_hold_or_nothing|TestSessionRaces' ./source/redis ./source/etcd ./source/zookeeper ./source/sql -conformance.races=$(RACES)

.PHONY: soak
soak: build ## Runs two agents over 200,000 locks on a Cluster for SOAKTIME (30m) while applications work and servers and agents break; writes docs/soak.md.
	@scripts/deps.sh redis postgres
	go test -count=1 -timeout 0 -v -run TestSoak ./test/soak -soak.time=$(SOAKTIME) -soak.locks=200000 -soak.rate=2150 -soak.between=20s -soak.every=10s -soak.program=$(CURDIR)/bin/locksteward -soak.report=$(CURDIR)/docs/soak.md

.PHONY: servers
servers: ## Runs the tests that depend on the server on Redis 6.0, 8 and Valkey 8, 9 too, which it fetches from Debian; SERVERS names some, as "redis-6.0 valkey-8.0" (about 40 min).
	@scripts/deps.sh redis cc servers
	scripts/on-servers.sh

.PHONY: mutation
mutation: ## Puts known defects of lock libraries into lock/, one at a time, and requires that its tests find each.
	@scripts/deps.sh redis cc
	go test ./lock/mutation -mutation -count=1 -timeout 60m -v

.PHONY: deploy-check
deploy-check: ## Checks deploy/: chart, manifests, Compose file, Dockerfile, unit, workflows, releases; starts what they start (2 min; a module with large libraries).
	@scripts/deps.sh redis prometheus alertmanager
	cd deploy/deploytest && go vet ./... && go test -count=1 -timeout 20m ./...
	cd tools/release && go vet ./... && go test ./...

.PHONY: deploy-golden
deploy-golden: ## Writes deploy/kubernetes/ and the chart's copies of grafana/ anew.
	cd deploy/deploytest && go test -run 'TestManifestsAreTheChart|TestChartHasTheFilesOfGrafana' -update .

.PHONY: dist
dist: ## Builds the files of a release into dist/: archives, bills of materials, SHA256SUMS.
	scripts/dist.sh

.PHONY: screenshots
screenshots: ## Takes the pictures of docs/img anew: the console in headless Chromium, the dashboards from a real Prometheus.
	@scripts/deps.sh redis chromium prometheus
	go test ./test/browser -run TestScreenshots -count=1 -screenshots
	go test ./test/dashboards -run TestEveryPanelHasData -count=1 -pictures

.PHONY: demo
demo: ## Shows Locksteward at work on a Redis of its own.
	go run ./cmd/locksteward demo

.PHONY: deps
deps: ## Installs what the tests need and the machine lacks (apt-get as root, or Homebrew).
	@scripts/deps.sh $(TESTDEPS)
