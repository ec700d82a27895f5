{{/* The file that the chart writes beside `config`. A change of it needs a restart of the pods. */}}
{{- define "weir.settings" -}}
server:
  {{- if eq .Values.mode "serve" }}
  listen: 0.0.0.0:8081
  admin: 0.0.0.0:8080
  {{- end }}
  workers: {{ include "weir.workers" . }}
  drain_delay: {{ .Values.server.drainDelaySeconds }}s
  drain_timeout: {{ .Values.server.drainTimeoutSeconds }}s
  limits:
    max_connection_age: {{ .Values.server.maxConnectionAge }}
    max_buffered_bytes: {{ .Values.server.maxBufferedMiB | int }}MiB
  {{- include "weir.tls" . | nindent 2 }}
  {{- if .Values.tokens.secret }}
  identity:
    tokens_file: /etc/weir-tokens/{{ .Values.tokens.key }}
  # The probes and Prometheus have no token. The Services do not publish the admin port.
  admin_open: [metrics]
  # The admin port has no TLS, and the gRPC port only with `tls.secret`; otherwise a mesh has to encrypt the tokens.
  plaintext: intended
  {{- end }}
{{- if include "weir.http" . }}
http:
  listen: 0.0.0.0:8082
  {{- include "weir.tls" . | nindent 2 }}
{{- end }}
{{- if eq .Values.mode "serve" }}
store:
  {{- if .Values.store.keySecret.name }}
  key_secret: "${file:/etc/weir-key/{{ .Values.store.keySecret.key }}}"
  {{- end }}
  {{- with include "weir.nodes" . }}
  redis:
    nodes: {{ splitList " " . | toJson }}
    {{- with $.Values.store.redis }}
    topology: {{ .topology }}
    local_budget: {{ .localBudgetMiB | int }}MiB
    {{- if .masterName }}
    master_name: {{ .masterName | quote }}
    {{- end }}
    {{- if .username }}
    username: {{ .username | quote }}
    {{- end }}
    {{- if .passwordSecret.name }}
    password_file: /etc/weir-redis/{{ .passwordSecret.key }}
    {{- end }}
    {{- if .caSecret.name }}
    tls: { ca_file: /etc/weir-redis-ca/{{ .caSecret.key }} }
    {{- end }}
    {{- end }}
  {{- else }}
  memory: { budget: {{ .Values.store.memory.budgetMiB | int }}MiB }
  {{- end }}
{{- end }}
{{- end -}}

{{/* TLS of a port. */}}
{{- define "weir.tls" -}}
{{- if .Values.tls.secret -}}
tls:
  cert_file: /etc/weir-tls/tls.crt
  key_file: /etc/weir-tls/tls.key
  {{- if ne .Values.tls.clientAuth "none" }}
  client_ca_file: /etc/weir-tls/ca.crt
  client_auth: {{ .Values.tls.clientAuth }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Not empty with the HTTP listener. */}}
{{- define "weir.http" -}}
{{- if and (eq .Values.mode "serve") .Values.http.enabled -}}on{{- end -}}
{{- end -}}

{{/* Variables of envoyproxy/ratelimit. */}}
{{- define "weir.ratelimit-env" -}}
{{- $env := dict "REDIS_SOCKET_TYPE" "tcp" "RUNTIME_ROOT" "/data" "RUNTIME_SUBDIRECTORY" "ratelimit" "RUNTIME_WATCH_ROOT" "false" "RUNTIME_IGNOREDOTFILES" "true" "USE_STATSD" "false" "WEIR_CONFIG" "/etc/weir" -}}
{{- $redis := .Values.store.redis -}}
{{- $addresses := list -}}
{{- $tls := false -}}
{{- range splitList " " (include "weir.nodes" .) -}}
{{- $tls = or $tls (hasPrefix "rediss://" .) -}}
{{- $addresses = append $addresses (. | trimPrefix "rediss://" | trimPrefix "redis://") -}}
{{- end -}}
{{- if eq $redis.topology "sentinel" -}}
{{- $addresses = prepend $addresses $redis.masterName -}}
{{- end -}}
{{- $_ := set $env "REDIS_URL" (join "," $addresses) -}}
{{- $_ := set $env "REDIS_TYPE" (upper $redis.topology) -}}
{{- if $tls -}}{{- $_ := set $env "REDIS_TLS" "true" -}}{{- end -}}
{{- if $redis.caSecret.name -}}{{- $_ := set $env "REDIS_TLS_CACERT" (printf "/etc/weir-redis-ca/%s" $redis.caSecret.key) -}}{{- end -}}
{{- if $redis.passwordSecret.name -}}{{- $_ := set $env "REDIS_AUTH_FILE" (printf "/etc/weir-redis/%s" $redis.passwordSecret.key) -}}{{- end -}}
{{- range $name, $value := merge (deepCopy .Values.ratelimit.env) $env }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end -}}
