{{- /* The one place. Leases, certificates and who is never asked by a webhook go by its name. */ -}}
{{- define "nodeyard.namespace" -}}
{{- if ne .Release.Namespace "nodeyard-system" -}}
{{- fail (printf "namespace %s: Nodeyard runs in nodeyard-system alone, where its leases, its certificates and the exemption from its own webhooks are; install with -n nodeyard-system --create-namespace" .Release.Namespace) -}}
{{- end -}}
nodeyard-system
{{- end -}}

{{- define "nodeyard.selector" -}}
app.kubernetes.io/name: nodeyard
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "nodeyard.labels" -}}
{{ include "nodeyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "nodeyard.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end -}}
