{{/* What the schema cannot say: values that would make an agent that does not start,
or that loses what it should keep. */}}
{{- define "locksteward.validate" -}}
{{- $v := .Values -}}
{{- if and (gt (int $v.replicas) 1) (ne $v.store.type "postgres") -}}
{{- fail (printf "replicas: got %d with store.type %s: a SQLite file belongs to one agent; set store.type to postgres and store.postgres.dsn, or replicas to 1" (int $v.replicas) $v.store.type) -}}
{{- end -}}
{{- if and (eq $v.store.type "postgres") (not $v.store.postgres.dsn) -}}
{{- fail "store.postgres.dsn: empty with store.type postgres: write postgres://USER@HOST:5432/DATABASE?sslmode=verify-full" -}}
{{- end -}}
{{- if regexMatch "^postgres(ql)?://[^/@]*:[^/@]*@" $v.store.postgres.dsn -}}
{{- fail "store.postgres.dsn: has a password in it, which would stand in a ConfigMap: put it into a Secret and name that in store.postgres.passwordSecret" -}}
{{- end -}}
{{- if and $v.store.postgres.dsn (ne $v.store.type "postgres") -}}
{{- fail "store.postgres.dsn: set while store.type is sqlite: set store.type to postgres, or leave it out" -}}
{{- end -}}
{{- if not $v.config.targets -}}
{{- fail "config.targets: empty: write at least one {name: NAME, url: URL}" -}}
{{- end -}}
{{- range $i, $t := $v.config.targets -}}
{{- if regexMatch "://[^/@]*:[^/@]+@" (toString (get $t "url")) -}}
{{- fail (printf "config.targets[%d].url: has a password in it, which would stand in a ConfigMap: put it into a Secret, mount that with secretMounts and name the file in password_file" $i) -}}
{{- end -}}
{{- end -}}
{{- range $path, $instead := dict
  "store.dsn" "store.type, store.postgres.dsn" "store.password_file" "store.postgres.passwordSecret"
  "store.audit_key_file" "store.auditKeySecret" "metrics.listen" "nothing: it is :10121"
  "metrics.web_config_file" "metrics.webConfigSecret" "console.listen" "console.usersSecret, which opens it"
  "console.users_file" "console.usersSecret" "console.tls_cert_file" "console.tlsSecret" "console.tls_key_file" "console.tlsSecret" -}}
{{- $parts := splitList "." $path -}}
{{- if hasKey (get $v.config (first $parts) | default dict) (last $parts) -}}
{{- fail (printf "config.%s: the chart sets it; use %s" $path $instead) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $v.config "cluster" -}}
{{- fail "config.cluster: the chart sets it; use cluster.lease and cluster.ipv6" -}}
{{- end -}}
{{- $names := list -}}
{{- range $i, $m := $v.secretMounts -}}
{{- if has $m.name $names -}}
{{- fail (printf "secretMounts[%d].name: %s is there twice" $i $m.name) -}}
{{- end -}}
{{- $names = append $names $m.name -}}
{{- end -}}
{{- $text := print (toYaml $v.config) (toYaml $v.classFiles) -}}
{{- range regexFindAll "/run/secrets/[^/\"'\\s]+" $text -1 | uniq -}}
{{- $name := trimPrefix "/run/secrets/" . -}}
{{- if not (has $name $names) -}}
{{- fail (printf "secretMounts: the configuration reads /run/secrets/%s/…, and no entry has the name %s; add {name: %s, secretName: SECRET}" $name $name $name) -}}
{{- end -}}
{{- end -}}
{{- if $v.console.ingress.enabled -}}
{{- if not $v.console.ingress.host -}}
{{- fail "console.ingress.host: empty: write the name at which people reach the console" -}}
{{- end -}}
{{- if not (include "locksteward.exposed" .) -}}
{{- fail "console.ingress.enabled: the console has no users, so that it listens on loopback: set console.usersSecret.name, or config.console.oidc or config.console.proxy" -}}
{{- end -}}
{{- end -}}
{{- if and $v.console.tlsSecret (not (include "locksteward.exposed" .)) -}}
{{- fail "console.tlsSecret: the console has no users, so that it listens on loopback: set console.usersSecret.name, or config.console.oidc or config.console.proxy" -}}
{{- end -}}
{{- end }}
