package cluster

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"1B": 1, "512MiB": 512 << 20, "2TB": 2e12, "500GB": 5e11, "auto": SizeAuto, "9223372036854775807B": -2,
		"0": -2, "1": -2, "1.5GB": -2, "1G": -2, "1 GB": -2, "-1GB": -2, "8388608TiB": -2, "": -2, "GiB": -2, "1gib": -2,
	} {
		got, err := ParseSize(text)
		if bad := want == -2; bad != (err != nil) || !bad && got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if err != nil {
			continue
		}
		again, err := ParseSize(got.String())
		if err != nil || again != got {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestSizeString(t *testing.T) {
	for size, want := range map[Size]string{0: "0B", 1023: "1023B", 1024: "1KiB", 1000: "1KB", 512 << 20: "512MiB", 5e11: "500GB", 1 << 40: "1TiB", 1536 << 20: "1536MiB", SizeAuto: "auto"} {
		if got := size.String(); got != want {
			t.Errorf("%d: %s, not %s", int64(size), got, want)
		}
	}
}
