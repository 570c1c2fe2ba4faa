"""What the e2e tests share: workloads to apply, a patient `eventually`, a cluster of the user's own."""
