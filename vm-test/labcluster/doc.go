// Package labcluster tests labk3s, the stand-in for k3s, as a whole: three of its
// servers on hosts of their own, which are network namespaces, become one cluster,
// lose members and get them back. It has tests only.
package labcluster
