package pinning

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/exit"
	"github.com/slipway/slipway/internal/pin"
)

// Read reads the lock of a profile.
func Read(profile string) (*pin.Lock, error) {
	name := pin.Path(profile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.With(exit.Usage, diag.WithHint(fmt.Errorf("the inputs of %s are not pinned: %w", profile, err), "run imagebuild pin -p "+profile))
	}
	if err != nil {
		return nil, fmt.Errorf("reading lock: %w", err)
	}
	return pin.Parse(name, data)
}
