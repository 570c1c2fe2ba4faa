"""The wire: ServingPlan v1alpha1 as JSON, and its way into a `planning.plan.Plan`.

``documents`` (files, for the command line) -> ``validation`` (``v1alpha1`` models and ``rules``) -> ``resolve``
(values, with ``target``, ``times``, ``references`` and ``config_maps``) -> `Plan`; ``schema`` and ``crd`` print the
same models.
"""
