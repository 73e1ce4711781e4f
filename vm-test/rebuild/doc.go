// Package rebuild loses nodes of a cluster and rebuilds them, with real members of
// etcd, a real API server with Longhorn's and Cilium's definitions, a real pxed with
// its ledger, and a node behind a real sshd. What has no place here, the kubelet, the
// controllers of Longhorn, k3s itself and the machine that netboots, is stood in for by
// functions whose names begin with standIn.
package rebuild
