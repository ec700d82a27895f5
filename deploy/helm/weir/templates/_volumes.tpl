{{/* Files are in folders and not in subPaths, so that the kubelet replaces them while the pod runs. */}}
{{- define "weir.mounts" -}}
- { name: config, mountPath: /etc/weir, readOnly: true }
# For `control: { cache_file: /var/lib/weir/control }`: Weir writes nothing else.
- { name: control, mountPath: /var/lib/weir }
{{- range $name, $secret := include "weir.secrets" . | fromYaml }}
- { name: {{ $name }}, mountPath: /etc/weir-{{ $name }}, readOnly: true }
{{- end }}
{{- if eq .Values.mode "ratelimit" }}
- { name: limits, mountPath: /data/ratelimit/config, readOnly: true }
{{- end }}
{{- end -}}

{{- define "weir.volumes" -}}
- name: config
  projected:
    sources:
      - configMap: { name: {{ include "weir.fullname" . }} }
      {{- with .Values.existingConfigMap }}
      - configMap: { name: {{ . }} }
      {{- end }}
- name: control
  emptyDir: { sizeLimit: 64Mi }
{{- range $name, $secret := include "weir.secrets" . | fromYaml }}
- name: {{ $name }}
  secret: { secretName: {{ $secret | quote }}, defaultMode: 0440 }
{{- end }}
{{- if eq .Values.mode "ratelimit" }}
- name: limits
  configMap: { name: {{ include "weir.fullname" . }}-limits }
{{- end }}
{{- end -}}

{{/* Volumes of existing Secrets, by the last part of their paths. */}}
{{- define "weir.secrets" -}}
{{- if eq .Values.mode "serve" }}
{{- with .Values.store.keySecret.name }}
key: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .Values.store.redis.passwordSecret.name }}
redis: {{ . | quote }}
{{- end }}
{{- with .Values.store.redis.caSecret.name }}
redis-ca: {{ . | quote }}
{{- end }}
{{- with .Values.tls.secret }}
tls: {{ . | quote }}
{{- end }}
{{- with .Values.tokens.secret }}
tokens: {{ . | quote }}
{{- end }}
{{- end -}}
