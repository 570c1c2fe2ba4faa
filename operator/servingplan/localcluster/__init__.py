"""A real Kubernetes control plane on this machine, for the demo and the tests.

etcd, API server, controller manager and scheduler are the real programs, built once from pinned Go modules
(``build``); nodes and pods are played by kwok with stages of our own (``stages``), so that GPUs run out and starting
takes time, without a container runtime. ``cluster.LocalCluster`` starts them in seconds and leaves nothing behind.

Place in the flow: beside the product; ``cli`` calls it for ``servingplan demo``, and the e2e tests stand on it.
It decides nothing about replicas, and needs neither pytest nor a Kubernetes client library.
"""
