{{- /* How the operator is told what it is (controller/settings.py): one place, read by the Deployment. */}}
{{- define "servingplan.env" -}}
- name: SERVINGPLAN_INSTALLATION
  value: {{ .Values.installation | quote }}
{{- with .Values.watchNamespaces }}
- name: SERVINGPLAN_NAMESPACES
  value: {{ join "," . | quote }}
{{- end }}
- name: SERVINGPLAN_LEASE_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: SERVINGPLAN_HEALTH_PORT
  value: {{ .Values.port | quote }}
- name: SERVINGPLAN_LOG_LEVEL
  value: {{ .Values.log.level | quote }}
- name: SERVINGPLAN_LOG_FORMAT
  value: {{ .Values.log.format | quote }}
- name: SERVINGPLAN_RELIST_SECONDS
  value: {{ .Values.relist | quote }}
- name: SERVINGPLAN_WORKERS
  value: {{ .Values.workers | quote }}
- name: SERVINGPLAN_LEDGER_DAYS
  value: {{ .Values.ledger.days | quote }}
{{- with .Values.evidence.runnerImage }}
- name: SERVINGPLAN_RUNNER_IMAGE
  value: {{ . | quote }}
{{- end }}
{{- if .Values.sources }}
- name: SERVINGPLAN_SOURCES_FILE
  value: /etc/servingplan/sources/sources.yaml
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
