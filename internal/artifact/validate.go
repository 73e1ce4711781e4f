package artifact

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Forms of the words in an index. They are narrow because the words become file
// names, kernel arguments and lines of logs.
var (
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	segmentForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+@=~-]{0,127}$`)
	guidForm    = regexp.MustCompile(`^[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}$`)
	rootForm    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	kernelForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+~-]{0,127}$`)
)

// maxSize bounds every size in an index, so that sums cannot overflow. 1 PiB.
const maxSize = int64(1) << 50

// maxProblems bounds how many problems one error lists.
const maxProblems = 20

// maxEpoch is the last second of the year 9999, the last that RFC 3339 can write.
const maxEpoch = 253402300799

// problems collects what is wrong with an index.
type problems struct {
	list []error
	more int
}

func (p *problems) addf(format string, args ...any) {
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, fmt.Errorf(format, args...))
}

func (p *problems) err() error {
	if p.more > 0 {
		p.list = append(p.list, fmt.Errorf("and %d more problems", p.more))
	}
	return errors.Join(p.list...)
}

// Validate checks that the index is complete and agrees with itself: names stay
// inside the directory, sizes add up, chunks cover the disk, partitions lie on it.
// The error lists all problems, up to a bound.
func (x Index) Validate() error {
	var p problems
	if x.Format != Format {
		p.addf("format is %q, want %q", x.Format, Format)
	}
	word(&p, "name", x.Name)
	word(&p, "environment", x.Environment)
	word(&p, "cluster", x.Cluster)
	if x.Substrate != "vm" && x.Substrate != "metal" {
		p.addf("substrate is %q, want vm or metal", x.Substrate)
	}
	if x.Plan.IsZero() {
		p.addf("plan has no digest")
	}
	if x.Epoch < 0 || x.Epoch > maxEpoch {
		p.addf("epoch %d is not a time of this era", x.Epoch)
	}
	checkFiles(&p, x.Files)
	checkDisk(&p, x.Disk)
	checkSlot(&p, x.Slot)
	checkSums(&p, x)
	return p.err()
}

func word(p *problems, key, value string) {
	if !nameForm.MatchString(value) {
		p.addf("%s %q is not a name (letters, digits, dot, underscore and hyphen, at most 63)", key, value)
	}
}

func checkFiles(p *problems, files []File) {
	if len(files) > MaxFiles {
		p.addf("%d files, more than %d", len(files), MaxFiles)
		return
	}
	roles := map[Role]int{}
	names := map[string]bool{}
	for i, f := range files {
		checkFile(p, i, f)
		roles[f.Role]++
		if i > 0 && files[i-1].Name >= f.Name {
			p.addf("files[%d]: %q does not come after %q: names must be sorted and unique", i, f.Name, files[i-1].Name)
		}
		for dir := path.Dir(f.Name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if names[dir] {
				p.addf("files[%d]: %q lies inside %q, which is a file", i, f.Name, dir)
			}
		}
		names[f.Name] = true
	}
	for _, role := range []Role{RoleDiskRaw, RoleDiskZstd, RoleDiskQcow2, RoleSlot, RoleSBOM, RoleProvenance, RolePlan} {
		if roles[role] > 1 {
			p.addf("%d files have the role %s, at most one can", roles[role], role)
		}
	}
	if roles[RoleDiskZstd] == 0 {
		p.addf("no file has the role %s, which holds the chunks", RoleDiskZstd)
	}
}

func checkFile(p *problems, i int, f File) {
	if why := badName(f.Name); why != "" {
		p.addf("files[%d]: name %q %s", i, f.Name, why)
	}
	if !f.Role.known() {
		p.addf("files[%d] (%s): unknown role %q", i, f.Name, f.Role)
	}
	if f.Size < 0 || f.Size > maxSize {
		p.addf("files[%d] (%s): size %d is out of range", i, f.Name, f.Size)
	}
	if f.Digest.IsZero() {
		p.addf("files[%d] (%s): no digest", i, f.Name)
	}
	if (f.Role == RoleSeed) != (f.Node != "") {
		p.addf("files[%d] (%s): a seed names its node, and nothing else does", i, f.Name)
	} else if f.Node != "" && !nameForm.MatchString(f.Node) {
		p.addf("files[%d] (%s): node %q is not a name", i, f.Name, f.Node)
	}
}

func (r Role) known() bool {
	switch r {
	case RoleDiskRaw, RoleDiskZstd, RoleDiskQcow2, RoleKernel, RoleInitrd, RoleInstaller, RoleSeed, RoleIPXE,
		RoleSBOM, RoleProvenance, RolePlan, RoleSlot, RolePayload:
		return true
	}
	return false
}

// badName says why a file name is refused, or "".
func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > 255:
		return "is longer than 255 bytes"
	case name == IndexName || name == SignatureName:
		return "belongs to the index itself"
	case path.IsAbs(name):
		return "is absolute"
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == ".." {
			return "leaves the directory"
		}
		if !segmentForm.MatchString(segment) {
			return fmt.Sprintf("has a part %q that is not allowed", segment)
		}
	}
	return ""
}
