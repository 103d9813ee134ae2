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
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "nodeyard.image" -}}
{{- $image := .Values.image -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- /* The Deployments as a JSON list: name, which is also that of the ServiceAccount, and capabilities. */ -}}
{{- define "nodeyard.deployments" -}}
{{- $deployments := list (dict "name" "nodeyard" "capabilities" .Values.capabilities) -}}
{{- if .Values.split -}}
{{- $deployments = list -}}
{{- range .Values.capabilities -}}
{{- $deployments = append $deployments (dict "name" (printf "nodeyard-%s" .) "capabilities" (list .)) -}}
{{- end -}}
{{- end -}}
{{- toJson $deployments -}}
{{- end -}}

{{- /* The pods of one Deployment: (list $ $deployment). */ -}}
{{- define "nodeyard.podSelector" -}}
{{- $root := index . 0 -}}
{{ include "nodeyard.selector" $root }}
{{- if $root.Values.split }}
app.kubernetes.io/component: {{ index (index . 1).capabilities 0 }}
{{- end }}
{{- end -}}

{{- /* A generated file of a capability, for the account that runs it: (list $ "roles" $capability). */ -}}
{{- define "nodeyard.file" -}}
{{- $root := index . 0 -}}
{{- $capability := index . 2 -}}
{{- $content := $root.Files.Get (printf "files/%s/%s.yaml" (index . 1) $capability) -}}
{{- if $root.Values.split -}}
{{- $account := printf "nodeyard-%s" $capability -}}
{{- $content = replace "- kind: ServiceAccount\n  name: nodeyard\n" (printf "- kind: ServiceAccount\n  name: %s\n" $account) $content -}}
{{- $content = replace ":nodeyard-system:nodeyard'" (printf ":nodeyard-system:%s'" $account) $content -}}
{{- end -}}
{{ $content }}
{{- end -}}
