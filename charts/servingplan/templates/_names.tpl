{{- define "servingplan.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "servingplan.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "servingplan.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Objects without a namespace, and those in other namespaces: releases of one name in two namespaces must not
       meet there. */}}
{{- define "servingplan.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "servingplan.fullname" .) }}
{{- end }}

{{- define "servingplan.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "servingplan.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: name the ServiceAccount to use where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "servingplan.sourcesName" -}}
{{- printf "%s-sources" (include "servingplan.fullname" . | trunc 55 | trimSuffix "-") }}
{{- end }}

{{- define "servingplan.selectorLabels" -}}
app.kubernetes.io/name: {{ include "servingplan.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "servingplan.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "servingplan.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "servingplan.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "servingplan.subject" -}}
- kind: ServiceAccount
  name: {{ include "servingplan.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* As the operator names it: controller/settings.py, lease_name. */}}
{{- define "servingplan.lease" -}}
{{- if eq .Values.installation "default" }}servingplan-operator{{ else }}{{ printf "servingplan-%s-operator" .Values.installation }}{{ end }}
{{- end }}
