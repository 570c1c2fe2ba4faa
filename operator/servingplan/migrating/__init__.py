"""The way in and the way out: what a schedule elsewhere really does, as a plan, and a plan as manifests elsewhere.

In reading order: `robfig` (when cron expressions fire), `keda_cron` (what KEDA makes of two of them), `scaled_object`
(what a manifest of KEDA states), `intended` (what its author meant), `spans`, `findings`, `lint` (where both differ),
`adopt` (a plan that does what was meant); `patterns`, `emitted`, `emit_keda`, `emit_cronjob` (a plan as manifests).
Pure: no I/O, no clock.
"""
