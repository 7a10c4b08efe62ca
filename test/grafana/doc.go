// Package grafana checks the dashboards with Grafana's own packages that are under the Apache License: their JSON against the schema of
// grafana-foundation-sdk, and tables, stats, variables and links as @grafana/ui, @grafana/data and @grafana/scenes show them in Chromium.
// It is a module of its own, since nothing else needs those packages: `make test-grafana`.
package grafana
