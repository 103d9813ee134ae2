{{/*
The required terms of a nodeAffinity, as {"terms": [...]}; none where nothing is required. Takes (list AFFINITY NAME).
*/}}
{{- define "nodeyard-scheduling.required" -}}
  {{- $name := printf "%s.requiredDuringSchedulingIgnoredDuringExecution" (index . 1) -}}
  {{- $value := (index . 0).requiredDuringSchedulingIgnoredDuringExecution -}}
  {{- $required := include "nodeyard-scheduling.map" (list $value $name) | mustFromJson -}}
  {{- $terms := list -}}
  {{- if $required -}}
    {{- $name = printf "%s.nodeSelectorTerms" $name -}}
    {{- $given := include "nodeyard-scheduling.list" (list $required.nodeSelectorTerms $name) | mustFromJson -}}
    {{- if not $given.items -}}
      {{- fail (printf "%s must have at least one term; without any, leave out what is required altogether" $name) -}}
    {{- end -}}
    {{- range $place, $term := $given.items -}}
      {{- $terms = append $terms (include "nodeyard-scheduling.term" (list $term (printf "%s[%d]" $name $place)) | mustFromJson) -}}
    {{- end -}}
  {{- end -}}
  {{- dict "terms" $terms | mustToJson -}}
{{- end -}}

{{/*
The preferred terms of a nodeAffinity, as {"items": [...]}. Takes (list AFFINITY NAME).
*/}}
{{- define "nodeyard-scheduling.preferred" -}}
  {{- $name := printf "%s.preferredDuringSchedulingIgnoredDuringExecution" (index . 1) -}}
  {{- $value := (index . 0).preferredDuringSchedulingIgnoredDuringExecution -}}
  {{- $given := include "nodeyard-scheduling.list" (list $value $name) | mustFromJson -}}
  {{- range $place, $item := $given.items -}}
    {{- $where := printf "%s[%d]" $name $place -}}
    {{- $item = include "nodeyard-scheduling.map" (list $item $where) | mustFromJson -}}
    {{- $_ := include "nodeyard-scheduling.term" (list $item.preference (printf "%s.preference" $where)) -}}
  {{- end -}}
  {{- mustToJson $given -}}
{{- end -}}

{{/*
A term as JSON, with the parts that say something. Takes (list TERM NAME).
*/}}
{{- define "nodeyard-scheduling.term" -}}
  {{- $name := index . 1 -}}
  {{- $term := include "nodeyard-scheduling.map" (list (index . 0) $name) | mustFromJson -}}
  {{- $checked := omit $term "matchExpressions" "matchFields" -}}
  {{- range $part := list "matchExpressions" "matchFields" -}}
    {{- $expressions := include "nodeyard-scheduling.list" (list (index $term $part) (printf "%s.%s" $name $part)) | mustFromJson -}}
    {{- range $place, $expression := $expressions.items -}}
      {{- $where := printf "%s.%s[%d]" $name $part $place -}}
      {{- $expression = include "nodeyard-scheduling.map" (list $expression $where) | mustFromJson -}}
      {{- $values := include "nodeyard-scheduling.list" (list $expression.values (printf "%s.values" $where)) | mustFromJson -}}
      {{- range $value := $values.items -}}
        {{- include "nodeyard-scheduling.checkValue" (list $value (toString $expression.key) $where) -}}
      {{- end -}}
    {{- end -}}
    {{- with $expressions.items -}}
      {{- $_ := set $checked $part . -}}
    {{- end -}}
  {{- end -}}
  {{- mustToJson $checked -}}
{{- end -}}

{{/*
Terms are alternatives, so that both sides hold where one term of each does: every pair becomes a term.
An empty term fits no node, nor does a pair with one; joined, it would fit what its partner fits. Where only such pairs
are left, one empty term says that no node fits. Takes (list TERMS TERMS), gives {"terms": [...]}.
*/}}
{{- define "nodeyard-scheduling.crossed" -}}
  {{- $terms := list -}}
  {{- range $one := index . 0 -}}
    {{- range $other := index $ 1 -}}
      {{- if and $one $other -}}
        {{- $pair := omit $one "matchExpressions" "matchFields" -}}
        {{- range $part := list "matchExpressions" "matchFields" -}}
          {{- with concat (get $one $part | default list) (get $other $part | default list) -}}
            {{- $_ := set $pair $part (uniq .) -}}
          {{- end -}}
        {{- end -}}
        {{- $terms = append $terms $pair -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- dict "terms" ($terms | default (list dict) | uniq) | mustToJson -}}
{{- end -}}
