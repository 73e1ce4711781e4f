package sbom

import (
	"bytes"
	"errors"
	"fmt"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/slipway/slipway/internal/digest"
)

// Check reads a bill of materials and holds it against the build it belongs to.
// It returns how many components it names.
func Check(data []byte, plan digest.Digest, epoch int64) (int, error) {
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return 0, fmt.Errorf("not CycloneDX: %w", err)
	}
	switch {
	case bom.BOMFormat != cdx.BOMFormat:
		return 0, fmt.Errorf("format is %q, want %q", bom.BOMFormat, cdx.BOMFormat)
	case bom.SerialNumber != Serial(plan):
		return 0, fmt.Errorf("serial number is %q, the plan's is %q", bom.SerialNumber, Serial(plan))
	case bom.Metadata == nil || bom.Metadata.Timestamp != timestamp(epoch):
		return 0, fmt.Errorf("time is not the build's %s", timestamp(epoch))
	case bom.Components == nil || len(*bom.Components) == 0:
		return 0, errors.New("names no component")
	}
	refs := map[string]bool{}
	for i, c := range *bom.Components {
		if c.BOMRef == "" || c.Name == "" {
			return 0, fmt.Errorf("component %d has no name or reference", i)
		}
		if refs[c.BOMRef] {
			return 0, fmt.Errorf("component %s is listed twice", c.BOMRef)
		}
		refs[c.BOMRef] = true
	}
	return len(*bom.Components), nil
}
