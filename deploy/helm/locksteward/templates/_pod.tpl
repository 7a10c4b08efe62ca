{{/* The pod, the same in the StatefulSet and the Deployment. */}}
{{- define "locksteward.pod" -}}
{{- $v := .Values -}}
metadata:
  labels:
    {{- include "locksteward.labels" . | nindent 4 }}
    {{- with $v.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # The agent starts anew with another configuration.
    checksum/config: {{ print (include "locksteward.config" .) (toYaml $v.classFiles) | sha256sum }}
    {{- with $v.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "locksteward.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ int $v.terminationGracePeriodSeconds }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml $v.podSecurityContext | nindent 4 }}
  containers:
    - name: locksteward
      image: {{ include "locksteward.image" . }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args: [run, --config, /etc/locksteward/locksteward.yaml]
      ports:
        - {name: metrics, containerPort: 10121}
        {{- if include "locksteward.exposed" . }}
        - {name: console, containerPort: 10122}
        {{- end }}
        {{- if include "locksteward.clustered" . }}
        - {name: cluster, containerPort: 10123}
        {{- end }}
      {{- if or $v.extraEnv (include "locksteward.clustered" .) }}
      env:
        {{- if include "locksteward.clustered" . }}
        - name: POD_IP
          valueFrom:
            fieldRef: {fieldPath: status.podIP}
        - {name: LOCKSTEWARD_CLUSTER_LISTEN, value: ":10123"}
        - {name: LOCKSTEWARD_CLUSTER_ADVERTISE, value: {{ ternary "[$(POD_IP)]:10123" "$(POD_IP):10123" $v.cluster.ipv6 | quote }}}
        {{- end }}
        {{- with $v.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      # A slow start: the database is brought up to date, or another agent's lease
      # runs out.
      startupProbe:
        {{- include "locksteward.probe" (dict "root" . "path" "healthy") | nindent 8 }}
        periodSeconds: 2
        timeoutSeconds: 3
        failureThreshold: 60
      livenessProbe:
        {{- include "locksteward.probe" (dict "root" . "path" "healthy") | nindent 8 }}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        {{- include "locksteward.probe" (dict "root" . "path" "ready") | nindent 8 }}
        periodSeconds: 5
        timeoutSeconds: 5
      securityContext:
        {{- toYaml $v.securityContext | nindent 8 }}
      resources:
        {{- toYaml $v.resources | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/locksteward, readOnly: true}
        - {name: data, mountPath: /var/lib/locksteward}
        - {name: tmp, mountPath: /tmp}
        {{- range include "locksteward.secrets" . | fromYamlArray }}
        - {name: {{ .name }}, mountPath: {{ .path }}, readOnly: true}
        {{- end }}
        {{- with $v.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "locksteward.fullname" . }}
        items:
          - {key: locksteward.yaml, path: locksteward.yaml}
          {{- range $name, $_ := $v.classFiles }}
          - {key: {{ printf "classes.d.%s" $name }}, path: {{ printf "classes.d/%s" $name }}}
          {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: 256Mi}
    {{- if eq $v.store.type "postgres" }}
    - name: data
      emptyDir: {sizeLimit: 256Mi}
    {{- else if not $v.store.sqlite.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- else if $v.store.sqlite.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ $v.store.sqlite.persistence.existingClaim }}
    {{- end }}
    {{- range include "locksteward.secrets" . | fromYamlArray }}
    - name: {{ .name }}
      # The group is the pod's fsGroup.
      secret: {secretName: {{ .secret }}, defaultMode: 0440}
    {{- end }}
    {{- with $v.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $v.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $v.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml $v.topologySpreadConstraints | nindent 4 }}
  {{- else if gt (int $v.replicas) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "locksteward.selectorLabels" . | nindent 10 }}
  {{- end }}
{{- end }}

{{/* All Secrets that are mounted, as a list of {name, path, secret}. */}}
{{- define "locksteward.secrets" -}}
{{- $v := .Values -}}
{{- $own := dict
  "store" (ternary $v.store.postgres.passwordSecret.name "" (eq $v.store.type "postgres"))
  "audit" $v.store.auditKeySecret.name
  "web" $v.metrics.webConfigSecret.name
  "users" $v.console.usersSecret.name
  "console-tls" $v.console.tlsSecret -}}
{{- $out := list -}}
{{- range $name, $secret := $own -}}
{{- if $secret -}}
{{- $out = append $out (dict "name" (printf "own-%s" $name) "path" (printf "/run/locksteward/%s" $name) "secret" $secret) -}}
{{- end -}}
{{- end -}}
{{- range $v.secretMounts -}}
{{- $out = append $out (dict "name" (printf "secret-%s" .name) "path" (printf "/run/secrets/%s" .name) "secret" .secretName) -}}
{{- end -}}
{{- toYaml $out -}}
{{- end }}

{{/* How the kubelet asks: over HTTP; by the program itself where the listener has TLS
or a login of its own. */}}
{{- define "locksteward.probe" -}}
{{- if .root.Values.metrics.webConfigSecret.name -}}
exec:
  command:
    - /usr/bin/locksteward
    - health
    - --url={{ include "locksteward.scheme" .root }}://127.0.0.1:10121
    {{- if and (eq .path "ready") (not .root.Values.metrics.webConfigSecret.login) }}
    - --ready
    {{- end }}
{{- else -}}
httpGet: {path: /-/{{ .path }}, port: metrics}
{{- end -}}
{{- end }}
