{{- /* What the operator may do where the plans are. Never: Secrets, impersonation, roles, a wildcard, a delete. What a
       deleted plan leaves is removed by the garbage collector, through ownerReferences. */}}
{{- define "servingplan.namespacedRules" -}}
# Plans: read. Their spec, labels and annotations are the user's.
- apiGroups: [servingplan.dev]
  resources: [servingplans]
  verbs: [get, list, watch]
- apiGroups: [servingplan.dev]
  resources: [servingplans/status]
  verbs: [patch]
# Needed to set an ownerReference with blockOwnerDeletion where the API server enforces that permission.
- apiGroups: [servingplan.dev]
  resources: [servingplans/finalizers]
  verbs: [update]
# Evidence: the same.
- apiGroups: [servingplan.dev]
  resources: [capacitybenchmarks, modelevaluations]
  verbs: [get, list, watch]
- apiGroups: [servingplan.dev]
  resources: [capacitybenchmarks/status, modelevaluations/status]
  verbs: [patch]
- apiGroups: [servingplan.dev]
  resources: [capacitybenchmarks/finalizers, modelevaluations/finalizers]
  verbs: [update]
# Its runners: started, suspended, and marked with the report that their container handed back.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch]
# Profiles and calendars.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
{{- if .Values.ledger.days }}
# The ledger of a plan's decisions.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, patch]
{{- end }}
# How far replicas have come; those that leave lose the label that their Service selects, and are marked as first to go.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch]
- apiGroups: [apps]
  resources: [deployments, replicasets, statefulsets]
  verbs: [get, list, watch]
# Owned engines; server-side apply creates with `create` and `patch`.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
# Replicas.
- apiGroups: [apps]
  resources: [deployments/scale, replicasets/scale, statefulsets/scale]
  verbs: [get, patch]
{{- range .Values.extraScaleTargets }}
- apiGroups: [{{ .apiGroup }}]
  resources: [{{ .resource }}]
  verbs: [get, list, watch]
- apiGroups: [{{ .apiGroup }}]
  resources: [{{ .resource }}/scale]
  verbs: [get, patch]
{{- end }}
# Floor mode: the minimum of an autoscaler.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, patch]
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [get, list, watch, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- define "servingplan.clusterReads" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
# The watch engine notices here that a kind it knows has come or gone.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
# And here, where it watches some namespaces only, that one of them has come.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}
