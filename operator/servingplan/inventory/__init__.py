"""What there is, read from files: models, accelerators, and logs of vLLM.

In: paths. Out: the values of `servingplan.hardware`, or an InputError that says which file, where in it, and what to
do. Reads headers of weight files, never the weights. In reading order: `files`, `fields`, `attention`, `states`,
`quantization`, `parameters`, `safetensors`, `models`; `accelerators`; `engine_log`.
"""
