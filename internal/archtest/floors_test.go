package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// floor is how high a package stands; imports go downwards.
type floor int

const (
	words     floor = iota // what everybody talks about; pure
	contracts              // contracts and decisions; pure
	drivers                // one kind of outside thing each
	makers                 // one artefact or step each; they never import each other
	stories                // ordered tables of makers
	programs               // flags in, exit code out; and the tests of whole programs
)

// floors names the floor of every directory; the longest prefix counts.
var floors = map[string]floor{
	"internal/baseline": words,
	"internal/cluster":  words,
	"internal/diag":     words,
	"internal/digest":   words,
	"internal/exit":     words,
	"internal/fstree":   words,
	"internal/progress": words,
	"internal/sequence": words,

	"images":                      contracts,
	"internal/artifact":           contracts,
	"internal/bootentry":          contracts,
	"internal/bootstrap/facts":    contracts,
	"internal/bootstrap/identity": contracts,
	"internal/bootstrap/member":   contracts,
	"internal/bootstrap/parity":   contracts,
	"internal/bootstrap/start":    contracts,
	"internal/bootstrap/verdict":  contracts,
	"internal/bootstrap/volume":   contracts,
	"internal/diskselect":         contracts,
	"internal/disklayout":         contracts,
	"internal/machine":            contracts,
	"internal/pin":                contracts,
	"internal/payload":            contracts,
	"internal/plan":               contracts,
	"internal/pxed/pxe":           contracts,
	"internal/profile":            contracts,
	"internal/run":                contracts,
	"internal/seed":               contracts,

	"internal/bootstrap/book":     drivers,
	"internal/bootstrap/chart":    drivers,
	"internal/bootstrap/gitops":   drivers,
	"internal/bootstrap/gitrepo":  drivers,
	"internal/bootstrap/etcd":     drivers,
	"internal/bootstrap/kube":     drivers,
	"internal/bootstrap/machines": drivers,
	"internal/bootstrap/runlock":  drivers,
	"internal/bootstrap/ssh":      drivers,
	"internal/cas":                drivers,
	"internal/cli":                drivers,
	"internal/debfile":            drivers,
	"internal/hosttool":           drivers,
	"internal/ledger":             drivers,
	"internal/node/console":       drivers,
	"internal/node/disk":          drivers,
	"internal/node/efivar":        drivers,
	"internal/node/kernelfs":      drivers,
	"internal/node/record":        drivers,
	"internal/node/unitname":      drivers,
	"internal/profilefile":        drivers,
	"internal/pxed/build":         drivers,
	"internal/pxed/client":        drivers,
	"internal/pxed/desk":          drivers,
	"internal/pxed/keep":          drivers,
	"internal/pxed/listen":        drivers,
	"internal/pxed/sse":           drivers,
	"internal/secrets":            drivers,

	"internal/bootstrap/":  makers,
	"internal/imagebuild/": makers,
	"internal/node/":       makers,
	"internal/pxed/":       makers,

	"internal/bootstrap":           stories,
	"internal/bootstrap/material":  stories,
	"internal/imagebuild":          stories,
	"internal/imagebuild/seedfile": stories,
	"internal/imagebuild/stick":    stories,
	"internal/imagebuild/verify":   stories,
	"internal/node":                stories,
	"internal/node/installer":      stories,
	"internal/pinning":             stories,
	"internal/pxed":                stories,

	"cmd":               programs,
	"internal/archtest": programs,
	"vm-test":           programs,
	"vm-test/labbin":    drivers,
	"vm-test/netns":     drivers,
	"vm-test/sshnode":   drivers,
}

// floorOf finds the floor of a directory. A key that ends in a slash stands for
// what is below it, any other for the directory and what is below it.
func floorOf(dir string) (floor, bool) {
	best, found := "", false
	for key := range floors {
		below := strings.HasPrefix(dir, strings.TrimSuffix(key, "/")+"/")
		if (below || dir == key) && len(key) >= len(best) {
			best, found = key, true
		}
	}
	return floors[best], found
}

// inside reports whether one directory lies in the other: a package may be split.
func inside(a, b string) bool {
	return strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// ruleFloors: every package has a floor and imports downwards only. Words,
// contracts and drivers may use their like; makers, stories and programs may not.
func ruleFloors(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		own, known := floorOf(p.dir)
		if !known {
			out = append(out, p.dir+": stands on no floor; add it to the table in floors_test.go")
			continue
		}
		for _, s := range p.product() {
			for imported, at := range s.imports() {
				dir, ours := inModule(imported)
				if theirs, _ := floorOf(dir); ours && !allowed(p.dir, own, dir, theirs) {
					out = append(out, fmt.Sprintf("%s: %s (floor %d) imports %s (floor %d)", at, p.dir, own, dir, theirs))
				}
			}
		}
	}
	return out
}

func allowed(from string, own floor, to string, theirs floor) bool {
	return own > theirs || own == theirs && (own <= drivers || inside(from, to))
}

// impure are packages that bring the outside world in.
var impure = []string{"os", "os/exec", "os/signal", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "io/ioutil", "log"}

// clocks are the functions of package time that look at the clock.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// rulePurity: words and contracts are values and decisions. The outside world,
// the clock and chance come in as arguments.
func rulePurity(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		if own, known := floorOf(p.dir); !known || own > contracts {
			continue
		}
		for _, s := range p.product() {
			for imported, at := range s.imports() {
				if slices.Contains(impure, imported) || strings.HasPrefix(imported, "golang.org/x/sys") {
					out = append(out, fmt.Sprintf("%s: %s must be pure and imports %s", at, p.dir, imported))
				}
			}
			for _, sel := range selectors(s, "time") {
				if slices.Contains(clocks, sel.Sel.Name) {
					out = append(out, fmt.Sprintf("%s: %s must be pure and calls time.%s", s.at(sel), p.dir, sel.Sel.Name))
				}
			}
		}
	}
	return out
}

// starters may start other programs: the gate of the build host, and what runs on
// a node or runs nodes, where there is no build host.
var starters = []string{"cmd/nodeinit", "internal/hosttool", "internal/node", "vm-test"}

// ruleStarters: everybody else goes through the gate, which gives every program
// the same environment and tells which package a missing one is in.
func ruleStarters(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		if mayImport(p.dir, starters) {
			continue
		}
		for _, s := range p.product() {
			if at, found := s.imports()["os/exec"]; found {
				out = append(out, at+": "+p.dir+" starts programs past internal/hosttool")
			}
		}
	}
	return out
}
