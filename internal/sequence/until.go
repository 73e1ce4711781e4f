package sequence

import (
	"context"
	"fmt"

	"github.com/slipway/slipway/internal/exit"
)

// Until makes a step that acts by waiting: look says what is still awaited, and the
// step is done when nothing is. pause lets time pass between two looks, and ends with
// the context. A look that fails while waiting is one more thing to wait out (an API
// server restarts when its node joins); only a refusal ends the wait.
func Until(step Step, look func(context.Context) ([]Change, error), pause func(context.Context) error) Step {
	step.Observe = look
	step.Do = func(ctx context.Context, tell Tell) error {
		last := ""
		for {
			left, err := look(ctx)
			if code := exit.Of(err); code == exit.Refused || code == exit.Usage {
				return err
			}
			if err == nil && len(left) == 0 {
				return nil
			}
			if words := awaited(left, err); words != last {
				tell(words)
				last = words
			}
			if err := pause(ctx); err != nil {
				return err
			}
		}
	}
	return step
}

// awaited is what is missing, in words: the first thing, and how many more.
func awaited(left []Change, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(left) > 1:
		return fmt.Sprintf("%s: %s, and %d more", left[0].What, left[0].Why, len(left)-1)
	default:
		return left[0].What + ": " + left[0].Why
	}
}
