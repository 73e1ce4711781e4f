// Package bootstrap runs the steps that install Cilium, Longhorn and Flux against a
// real etcd and a real API server, with the charts, definitions and manifests that
// the lab profile's lock names: once, again, killed between steps, and killed inside
// of Helm. No kubelet runs there; where a step waits for one, the test writes the
// status that it would report, in functions whose names begin with standIn.
package bootstrap
