{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "weir.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "weir.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: weir
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of objects that the selectors of the server must not select. */}}
{{- define "weir.other-labels" -}}
app.kubernetes.io/name: {{ include "weir.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "weir.serviceaccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "weir.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* Nodes of Redis, separated by spaces; empty with the memory store. */}}
{{- define "weir.nodes" -}}
{{- if .Values.store.redis.nodes -}}
{{- join " " .Values.store.redis.nodes -}}
{{- else if .Values.trialRedis.enabled -}}
redis://{{ include "weir.fullname" . }}-trial-redis:6379
{{- end -}}
{{- end -}}

{{- define "weir.replicas" -}}
{{- if not (kindIs "invalid" .Values.replicas) -}}
{{- .Values.replicas -}}
{{- else -}}
{{- ternary 2 1 (ne (include "weir.nodes" .) "") -}}
{{- end -}}
{{- end -}}

{{/* Threads: the CPU request, rounded up; 0, one per core, without a request. */}}
{{- define "weir.workers" -}}
{{- $cpu := dig "requests" "cpu" "" .Values.resources | toString -}}
{{- if not (kindIs "invalid" .Values.server.workers) -}}
{{- .Values.server.workers -}}
{{- else if hasSuffix "m" $cpu -}}
{{- divf (trimSuffix "m" $cpu | float64) 1000 | ceil -}}
{{- else -}}
{{- $cpu | float64 | ceil -}}
{{- end -}}
{{- end -}}

{{- define "weir.drain" -}}
{{- add .Values.server.drainDelaySeconds 1 .Values.server.drainTimeoutSeconds -}}
{{- end -}}

{{- define "weir.grace" -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- add (include "weir.drain" .) 9 -}}
{{- else -}}
{{- .Values.terminationGracePeriodSeconds -}}
{{- end -}}
{{- end -}}

{{/* MiB of the memory limit; 0 without one, or with a unit other than Mi and Gi. */}}
{{- define "weir.limit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString -}}
{{- if hasSuffix "Gi" $limit -}}
{{- mulf (trimSuffix "Gi" $limit | float64) 1024 | floor -}}
{{- else if hasSuffix "Mi" $limit -}}
{{- trimSuffix "Mi" $limit | float64 | floor -}}
{{- else -}}
0
{{- end -}}
{{- end -}}

{{/* MiB that the pod may need: the store's budget, the buffers, and a quarter. */}}
{{- define "weir.memory" -}}
{{- $store := ternary (mul 2 .Values.store.redis.localBudgetMiB) .Values.store.memory.budgetMiB (ne (include "weir.nodes" .) "") -}}
{{- divf (mulf (add $store .Values.server.maxBufferedMiB) 5) 4 | ceil -}}
{{- end -}}
