{{/*
How every helper is called: with the root context, or with (list OWN $).
Takes (list CALL FIELD) and gives JSON: own, the chart's own FIELD, and scheduling, what the release carries.
*/}}
{{- define "nodeyard-scheduling.arguments" -}}
  {{- $call := index . 0 -}}
  {{- $field := index . 1 -}}
  {{- $own := dict -}}
  {{- $root := $call -}}
  {{- if kindIs "slice" $call -}}
    {{- if ne (len $call) 2 -}}
      {{- fail (printf "cozy-lib.scheduling: give $ or (list OWN $) for %s, not a list of length %d" $field (len $call)) -}}
    {{- end -}}
    {{- $own = index $call 0 -}}
    {{- $root = index $call 1 -}}
  {{- end -}}
  {{- if not (and (kindIs "map" $root) (hasKey $root "Values")) -}}
    {{- $kind := include "nodeyard-scheduling.kind" (list $root) -}}
    {{- fail (printf "cozy-lib.scheduling: %s was asked for with a %s instead of the root context; inside range and with, give $ and not the dot" $field $kind) -}}
  {{- end -}}
  {{- if eq (toJson $own) `""` -}}
    {{- $own = dict -}}
  {{- end -}}
  {{- $own = include "nodeyard-scheduling.map" (list $own (printf "the chart's own %s" $field)) | mustFromJson -}}
  {{- $scheduling := include "nodeyard-scheduling.map" (list $root.Values._scheduling "_scheduling") | mustFromJson -}}
  {{- dict "own" $own "scheduling" $scheduling | mustToJson -}}
{{- end -}}
