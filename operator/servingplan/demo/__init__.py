"""A working day in a few minutes: the real operator on a real control plane, with a faster clock.

Place in the flow: ``cli`` calls `run.play`. A plan becomes a `story` (which parts of which day are worth watching), a
`place` (a control plane of this machine, or a cluster of the user's own) gets what is needed (`material`), the
operator runs as a process of its own (`operator_process`), and what happens is read from the cluster (`watching`),
kept (`record`), drawn (`picture`, `screen`) or told line by line (`telling`), and summed up (`summary`). It decides
nothing about replicas: everything that is shown is what the operator did.
"""
