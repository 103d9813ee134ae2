{{/*
The chart's own nodeAffinity and the class's, both in force. Nothing where there are none.
Takes $ or (list OWN $).
*/}}
{{- define "cozy-lib.scheduling.nodeAffinityMap" -}}
  {{- $arguments := include "nodeyard-scheduling.arguments" (list . "nodeAffinity") | mustFromJson -}}
  {{- $joined := include "nodeyard-scheduling.joined" (list $arguments.own $arguments.scheduling) | mustFromJson -}}
  {{- with $joined -}}
    {{- toYaml . -}}
  {{- end -}}
{{- end -}}

{{/*
The same with its key, `nodeAffinity:`.
*/}}
{{- define "cozy-lib.scheduling.nodeAffinity" -}}
  {{- with include "cozy-lib.scheduling.nodeAffinityMap" . -}}
    {{- printf "nodeAffinity:%s" (nindent 2 .) -}}
  {{- end -}}
{{- end -}}

{{/*
The whole affinity of a pod: the class's nodeAffinity joins the chart's own, and the rest of the chart's own is kept.
Takes $ or (list OWN $).
*/}}
{{- define "cozy-lib.scheduling.affinityMap" -}}
  {{- $arguments := include "nodeyard-scheduling.arguments" (list . "affinity") | mustFromJson -}}
  {{- $own := include "nodeyard-scheduling.map" (list $arguments.own.nodeAffinity "the chart's own nodeAffinity") | mustFromJson -}}
  {{- $joined := include "nodeyard-scheduling.joined" (list $own $arguments.scheduling) | mustFromJson -}}
  {{- $affinity := omit $arguments.own "nodeAffinity" -}}
  {{- with $joined -}}
    {{- $_ := set $affinity "nodeAffinity" . -}}
  {{- end -}}
  {{- with $affinity -}}
    {{- toYaml . -}}
  {{- end -}}
{{- end -}}

{{/*
The same with its key, `affinity:`.
*/}}
{{- define "cozy-lib.scheduling.affinity" -}}
  {{- with include "cozy-lib.scheduling.affinityMap" . -}}
    {{- printf "affinity:%s" (nindent 2 .) -}}
  {{- end -}}
{{- end -}}

{{/*
Two nodeAffinities as one, as JSON. Takes (list OWN SCHEDULING).
*/}}
{{- define "nodeyard-scheduling.joined" -}}
  {{- $names := list "the chart's own nodeAffinity" "_scheduling.nodeAffinity" -}}
  {{- $own := index . 0 -}}
  {{- $class := include "nodeyard-scheduling.map" (list (index . 1).nodeAffinity (last $names)) | mustFromJson -}}
  {{- /* What the API knows no field for stays, so that the API server and not silence answers a misspelt one. */ -}}
  {{- $joined := omit $own "requiredDuringSchedulingIgnoredDuringExecution" "preferredDuringSchedulingIgnoredDuringExecution" -}}

  {{- $ours := include "nodeyard-scheduling.required" (list $own (first $names)) | mustFromJson -}}
  {{- $theirs := include "nodeyard-scheduling.required" (list $class (last $names)) | mustFromJson -}}
  {{- $terms := concat $ours.terms $theirs.terms -}}
  {{- if and $ours.terms $theirs.terms -}}
    {{- $terms = (include "nodeyard-scheduling.crossed" (list $ours.terms $theirs.terms) | mustFromJson).terms -}}
  {{- end -}}
  {{- if $terms -}}
    {{- $_ := set $joined "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
  {{- end -}}

  {{- $ours = include "nodeyard-scheduling.preferred" (list $own (first $names)) | mustFromJson -}}
  {{- $theirs = include "nodeyard-scheduling.preferred" (list $class (last $names)) | mustFromJson -}}
  {{- with concat $ours.items $theirs.items -}}
    {{- $_ := set $joined "preferredDuringSchedulingIgnoredDuringExecution" . -}}
  {{- end -}}
  {{- mustToJson $joined -}}
{{- end -}}
