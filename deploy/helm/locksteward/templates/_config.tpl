{{/* locksteward.yaml: the values' config, and what the chart sets. */}}
{{- define "locksteward.config" -}}
{{- $v := .Values -}}
{{- $store := dict -}}
{{- if eq $v.store.type "postgres" -}}
{{- $_ := set $store "dsn" $v.store.postgres.dsn -}}
{{- if $v.store.postgres.passwordSecret.name -}}
{{- $_ := set $store "password_file" (printf "/run/locksteward/store/%s" $v.store.postgres.passwordSecret.key) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $store "dsn" "sqlite:/var/lib/locksteward/locksteward.db" -}}
{{- end -}}
{{- if $v.store.auditKeySecret.name -}}
{{- $_ := set $store "audit_key_file" (printf "/run/locksteward/audit/%s" $v.store.auditKeySecret.key) -}}
{{- end -}}
{{- $metrics := dict "listen" ":10121" -}}
{{- if $v.metrics.webConfigSecret.name -}}
{{- $_ := set $metrics "web_config_file" (printf "/run/locksteward/web/%s" $v.metrics.webConfigSecret.key) -}}
{{- end -}}
{{- $console := dict "listen" (ternary ":10122" "127.0.0.1:10122" (eq (include "locksteward.exposed" .) "yes")) "users_file" "" -}}
{{- if $v.console.usersSecret.name -}}
{{- $_ := set $console "users_file" (printf "/run/locksteward/users/%s" $v.console.usersSecret.key) -}}
{{- end -}}
{{- if $v.console.tlsSecret -}}
{{- $_ := set $console "tls_cert_file" "/run/locksteward/console-tls/tls.crt" -}}
{{- $_ := set $console "tls_key_file" "/run/locksteward/console-tls/tls.key" -}}
{{- end -}}
{{- $own := dict "store" $store "metrics" $metrics "console" $console -}}
{{- if and (include "locksteward.clustered" .) $v.cluster.lease -}}
{{- $_ := set $own "cluster" (dict "lease" $v.cluster.lease) -}}
{{- end -}}
{{- mergeOverwrite (deepCopy $v.config) $own | toYaml -}}
{{- end }}

{{/* The ports that the configuration makes the agent connect to, as PROTOCOL/PORT,
each once. What has no scheme, or stands in a file, cannot be seen:
networkPolicy.extraPorts. */}}
{{- define "locksteward.ports" -}}
{{- $c := omit .Values.config "classes" "rules" "redlock" "release" "log" -}}
{{- with get $c "alert" -}}{{- $_ := set $c "alert" (omit . "console_url") -}}{{- end -}}
{{- $text := print (toYaml $c) "\n" .Values.store.postgres.dsn -}}
{{- $ports := list -}}
{{- range regexFindAll "[a-z+]+://[^/?\\s\"']+" $text -1 -}}
{{- $scheme := regexFind "^[a-z+]+" . -}}
{{- $standard := dict "redis" "6379" "rediss" "6379" "http" "80" "https" "443" "tcp" "601" "tls" "6514" "udp" "514" "postgres" "5432" "postgresql" "5432" -}}
{{- $base := regexReplaceAll "[+].*$" $scheme "" -}}
{{- $port := index $standard $base -}}
{{- if contains "sentinel" $scheme -}}
{{- $ports = append $ports "TCP/6379" -}}
{{- $port = "26379" -}}
{{- end -}}
{{- if $port -}}
{{- $hosts := regexReplaceAll "^[a-z+]+://([^@]*@)?" . "" -}}
{{- range splitList "," $hosts -}}
{{- $given := regexFind ":[0-9]+$" . | trimPrefix ":" -}}
{{- $ports = append $ports (printf "%s/%s" (ternary "UDP" "TCP" (eq $scheme "udp")) ($given | default $port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $t := .Values.config.targets -}}
{{- range $from, $to := get $t "addr_map" | default dict -}}
{{- $ports = append $ports (printf "TCP/%s" (regexFind "[0-9]+$" $to)) -}}
{{- end -}}
{{- end -}}
{{- range $r := get (get .Values.config "alert" | default dict) "receivers" | default list -}}
{{- if eq (get $r "kind") "email" -}}
{{- $ports = append $ports (printf "TCP/%s" (regexFind "[0-9]+$" (get $r "server") | default "587")) -}}
{{- end -}}
{{- if eq (get $r "kind") "pagerduty" -}}{{- $ports = append $ports "TCP/443" -}}{{- end -}}
{{- end -}}
{{- if contains "url_file:" $text -}}{{- $ports = append $ports "TCP/443" -}}{{- end -}}
{{- range .Values.networkPolicy.extraPorts -}}{{- $ports = append $ports (printf "TCP/%d" (int .)) -}}{{- end -}}
{{- without ($ports | uniq | sortAlpha) "TCP/" | join " " -}}
{{- end }}
