{{- define "locksteward.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "locksteward.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "locksteward.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "locksteward.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "locksteward.selectorLabels" -}}
app.kubernetes.io/name: {{ include "locksteward.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "locksteward.labels" -}}
{{ include "locksteward.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "locksteward.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "locksteward.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "locksteward.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* How the metrics listener is spoken to. */}}
{{- define "locksteward.scheme" -}}
{{- $web := .Values.metrics.webConfigSecret -}}
{{- ternary "https" "http" (and (ne $web.name "") $web.tls) -}}
{{- end }}

{{/* Whether the console can be reached from outside of its pod: "yes" or nothing. */}}
{{- define "locksteward.exposed" -}}
{{- $console := get .Values.config "console" | default dict -}}
{{- if or .Values.console.usersSecret.name (get $console "oidc") (get $console "proxy") -}}yes{{- end -}}
{{- end }}

{{/* Whether pods may share the work: "yes" or nothing. */}}
{{- define "locksteward.clustered" -}}
{{- if eq .Values.store.type "postgres" -}}yes{{- end -}}
{{- end }}
