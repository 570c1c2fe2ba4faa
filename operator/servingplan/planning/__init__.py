"""The pure core: a plan, an observation, a history and an instant become a decision.

Reading order, which is also the order of the data flow: ``units``, ``reasons``, ``series``, ``target``, ``plan``,
``calendar``, ``demand``, ``sizing``, ``lead``, ``rises``, ``timeline``, ``observation``, ``signals``, ``counts``,
``record``, ``evidence``, ``excess``, ``feedback``, ``stabilize``, ``trail``, ``decision``, ``ownership``, ``victims``.
Nothing here reads a clock, draws a random number, logs, or does I/O.
"""
