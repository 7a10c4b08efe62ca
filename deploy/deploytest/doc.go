// Package deploytest checks what deploy/ ships, without a Docker engine or a
// Kubernetes cluster: the chart is rendered with Helm's own library and its objects
// are decoded strictly into their Go types, the Dockerfile goes through BuildKit's
// parser, the Compose file through Compose's loader, the workflows through
// actionlint, the systemd unit through systemd-analyze; each configuration in them
// goes through `locksteward config check`, and each command line starts the real,
// static program as another user.
//
// It is a module of its own since these libraries are large. `make deploy-check`
// runs it; docs/deploy.md says what is checked and what cannot be here.
package deploytest
