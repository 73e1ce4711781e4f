// Package bootstrap is the story of a cluster: from booted nodes to one that Flux
// owns, and back from a lost node. Each use case is an ordered table of steps; the
// drivers that the steps need are made here and handed to them.
package bootstrap
