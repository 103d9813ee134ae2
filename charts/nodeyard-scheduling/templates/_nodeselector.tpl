{{/*
The labels that a node must have: the chart's own and the class's, which wins. Nothing where there are none.
Takes $ or (list OWN $).
*/}}
{{- define "cozy-lib.scheduling.nodeSelectorMap" -}}
  {{- $arguments := include "nodeyard-scheduling.arguments" (list . "nodeSelector") | mustFromJson -}}
  {{- $name := "_scheduling.nodeSelector" -}}
  {{- $class := include "nodeyard-scheduling.map" (list $arguments.scheduling.nodeSelector $name) | mustFromJson -}}
  {{- $sides := list (list $arguments.own "the chart's own nodeSelector") (list $class $name) -}}
  {{- $selector := dict -}}
  {{- range $side := $sides -}}
    {{- range $key, $value := first $side -}}
      {{- include "nodeyard-scheduling.checkValue" (list $value $key (last $side)) -}}
      {{- $_ := set $selector $key $value -}}
    {{- end -}}
  {{- end -}}
  {{- with $selector -}}
    {{- toYaml . -}}
  {{- end -}}
{{- end -}}

{{/*
The same with its key, `nodeSelector:`.
*/}}
{{- define "cozy-lib.scheduling.nodeSelector" -}}
  {{- with include "cozy-lib.scheduling.nodeSelectorMap" . -}}
    {{- printf "nodeSelector:%s" (nindent 2 .) -}}
  {{- end -}}
{{- end -}}
