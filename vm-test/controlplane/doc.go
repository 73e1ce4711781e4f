// Package controlplane gives a test a Kubernetes control plane of its own: real
// etcd members and a real API server, built by labbin from the upstream modules.
//
// Each plane has loopback addresses of its own, one per etcd member as on a node
// each, and one for the API server, so that well-known ports can be used by several
// at a time and any of them can go and come back. RBAC is on. Nothing schedules or
// runs pods; controllers run when asked for. Everything ends with the test, also
// when the test is killed.
package controlplane
