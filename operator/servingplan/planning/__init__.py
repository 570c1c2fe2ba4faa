"""The pure core: a plan, an observation, a history and an instant become a decision.

Reading order, which is also the order of the data flow: ``units``, ``reasons``, ``series``, ``target``,
``calendar``, ``plan``, ``demand``, ``sizing``, ``timeline``, ``observation``, ``feedback``, ``stabilize``,
``decision``, ``ownership``. Nothing here reads a clock, draws a random number, logs, or does I/O.
"""
