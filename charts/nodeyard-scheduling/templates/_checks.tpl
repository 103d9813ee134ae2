{{/*
A map as JSON, an empty one where there is none. Takes (list VALUE NAME) and fails where VALUE is something else.
*/}}
{{- define "nodeyard-scheduling.map" -}}
  {{- $value := index . 0 -}}
  {{- if kindIs "invalid" $value -}}
    {{- $value = dict -}}
  {{- end -}}
  {{- if not (kindIs "map" $value) -}}
    {{- fail (printf "%s must be a map, not the %s %s" (index . 1) (include "nodeyard-scheduling.kind" (list $value)) (toJson $value)) -}}
  {{- end -}}
  {{- mustToJson $value -}}
{{- end -}}

{{/*
A list as JSON, wrapped as {"items": [...]}. Takes (list VALUE NAME) and fails where VALUE is something else.
*/}}
{{- define "nodeyard-scheduling.list" -}}
  {{- $value := index . 0 -}}
  {{- if kindIs "invalid" $value -}}
    {{- $value = list -}}
  {{- end -}}
  {{- if not (kindIs "slice" $value) -}}
    {{- fail (printf "%s must be a list, not the %s %s" (index . 1) (include "nodeyard-scheduling.kind" (list $value)) (toJson $value)) -}}
  {{- end -}}
  {{- dict "items" $value | mustToJson -}}
{{- end -}}

{{/*
Fails unless a value of a label is a string. Takes (list VALUE KEY NAME). YAML makes a boolean of an unquoted true, and
a pod with one is refused only when an operator creates it, far from the chart.
*/}}
{{- define "nodeyard-scheduling.checkValue" -}}
  {{- $value := index . 0 -}}
  {{- if not (kindIs "string" $value) -}}
    {{- $kind := include "nodeyard-scheduling.kind" (list $value) -}}
    {{- $remedy := ternary "" "; put it in quotes" (has $kind (list "map" "list" "null")) -}}
    {{- fail (printf "%s: the value of %q must be a string, not the %s %s%s" (index . 2) (index . 1) $kind (toJson $value) $remedy) -}}
  {{- end -}}
{{- end -}}

{{/*
What YAML calls the kind of a value. Takes (list VALUE), for VALUE may be nil.
*/}}
{{- define "nodeyard-scheduling.kind" -}}
  {{- $kind := kindOf (index . 0) -}}
  {{- $names := dict "invalid" "null" "bool" "boolean" "slice" "list" "int" "number" "int64" "number" "float64" "number" -}}
  {{- get $names $kind | default $kind -}}
{{- end -}}
