// Package rule holds what must be true of a cluster as a whole: that ranges do
// not overlap, that a quorum is possible, that nothing is given twice. Shapes of
// single values are package form's.
//
// Every rule is one small function. A rule says nothing about values that are
// missing or unusable, because the decoder has done so already.
package rule

import (
	"fmt"

	"github.com/slipway/slipway/internal/cluster"
)

// Report receives what is wrong at a dotted path, and what to do about it.
type Report func(path, message, hint string)

// Check applies all rules to c. With partial, for a base alone, only the rules
// that hold without an overlay.
func Check(c *cluster.Cluster, partial bool, report Report) {
	for _, check := range always() {
		check(c, report)
	}
	if partial {
		baseNames(c, report)
		return
	}
	for _, check := range complete() {
		check(c, report)
	}
}

type rule func(*cluster.Cluster, Report)

// always lists the rules about values that a base may hold as well.
func always() []rule {
	return []rule{
		reservedNames, families, reservedRanges, disjointRanges, serviceRange, clusterDNS, domains,
		vpnPeers, users, userNames, packages, sysctls, commandLine, systemBounds, imageSizes, debianArchive,
		proxies, registries, k3sKeys, fluxSource,
	}
}

// complete lists the rules about an environment.
func complete() []rule {
	return []rule{
		nodeNames, nodeSerials, nodeHostKeys, serverCount, podRange, macs, interfaces, staticAddresses, uniqueAddresses,
		gateway, virtualAddress, loadBalancers, outsideRanges, diskSelectors, dataDiskNames, diskOwners, systemDiskRoom,
		someoneIsRoot, labKey, metalFirmware, replicas,
	}
}

// seen remembers where something was met first.
type seen[K comparable] map[K]string

// again reports whether key was met before and where; it remembers it otherwise.
func (s seen[K]) again(key K, path string) (string, bool) {
	if first, ok := s[key]; ok {
		return first, true
	}
	s[key] = path
	return "", false
}

func nodePath(i int) string { return fmt.Sprintf("nodes[%d]", i) }

// eachInterface visits all interfaces with their paths.
func eachInterface(c *cluster.Cluster, visit func(node, index int, path string, in *cluster.Interface)) {
	for i := range c.Nodes {
		for j := range c.Nodes[i].Interfaces {
			visit(i, j, fmt.Sprintf("nodes[%d].interfaces[%d]", i, j), &c.Nodes[i].Interfaces[j])
		}
	}
}

// count renders a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
