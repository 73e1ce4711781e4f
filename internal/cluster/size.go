package cluster

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Size is a number of bytes as people write it: "512MiB", "2TB", or "auto".
// Zero means "not given", SizeAuto that the tool decides.
type Size int64

// SizeAuto leaves the size to the tool.
const SizeAuto Size = -1

// Units of Size: binary (powers of 1024) and the decimal ones disks are sold by.
var sizeForm = regexp.MustCompile(`^([0-9]{1,15})(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)$`)

func unit(name string) int64 {
	switch name {
	case "KiB":
		return 1 << 10
	case "MiB":
		return 1 << 20
	case "GiB":
		return 1 << 30
	case "TiB":
		return 1 << 40
	case "KB":
		return 1e3
	case "MB":
		return 1e6
	case "GB":
		return 1e9
	case "TB":
		return 1e12
	default:
		return 1
	}
}

// ParseSize reads a whole number with a unit, or "auto". A number without a unit
// is refused: it means bytes to some and megabytes to others.
func ParseSize(s string) (Size, error) {
	if s == "auto" {
		return SizeAuto, nil
	}
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("not a size: %q (want a whole number with a unit, such as 512MiB or 2TB, or auto)", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > math.MaxInt64/unit(m[2]) {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return Size(n * unit(m[2])), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error {
	v, err := ParseSize(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// MarshalText implements encoding.TextMarshaler; it gives the form of String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the form that ParseSize reads, in the unit that makes the number
// smallest: 512MiB and 500GB stay what they are.
func (s Size) String() string {
	if s == SizeAuto {
		return "auto"
	}
	least, name := int64(s), "B"
	for _, u := range []string{"TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "KB"} {
		if n := int64(s); n%unit(u) == 0 && n/unit(u) < least {
			least, name = n/unit(u), u
		}
	}
	return fmt.Sprintf("%d%s", least, name)
}
