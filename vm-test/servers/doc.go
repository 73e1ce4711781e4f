// Package servers holds the test that bootstrap's steps make a cluster of three servers:
// over SSH, on three hosts in network name spaces, with labk3s in the place of k3s. The
// kubelet is real and has a runtime that runs nothing; systemd has a stand-in that starts,
// restarts and tells of a unit. What comes out says "labk3s".
package servers
