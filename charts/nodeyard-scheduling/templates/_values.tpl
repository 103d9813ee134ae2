{{/*
`_scheduling:` for the values of a further HelmRelease: neither subcharts nor releases that a chart makes get it by
themselves. Takes $.
*/}}
{{- define "cozy-lib.scheduling.values" -}}
  {{- if kindIs "slice" . -}}
    {{- fail "cozy-lib.scheduling.values takes $ alone" -}}
  {{- end -}}
  {{- $arguments := include "nodeyard-scheduling.arguments" (list . "_scheduling") | mustFromJson -}}
  {{- with $arguments.scheduling -}}
    {{- dict "_scheduling" . | toYaml -}}
  {{- end -}}
{{- end -}}
