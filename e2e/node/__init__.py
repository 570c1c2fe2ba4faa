"""Real nodes: kubelet, containerd and kube-proxy beside the local control plane, in namespaces that end with them.

`machine` says what a machine must have and installs it, `space` is where everything runs and ends, `inside` its first
process; `cluster.RealCluster` is what tests use. ``python -m e2e.node COMMAND`` runs a command in a space.
"""
