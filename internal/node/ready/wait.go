package ready

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Marker exists on a node whose baseline holds.
const Marker = "/run/slipway/ready"

// issue is shown above the login prompt of every console.
const issue = "/run/issue.d/50-slipway.issue"

// pause is the time between two looks. The first are quick: most of what is
// missing right after the boot appears within seconds.
func pause(look int) time.Duration {
	if look < 10 {
		return 500 * time.Millisecond
	}
	return 3 * time.Second
}

// lookLimit bounds one look: systemd that does not answer must not stop the wait.
const lookLimit = 20 * time.Second

// Wait looks until nothing is missing or until the time is over, at least once, and
// returns what was missing at the last look. changed is called whenever that differs.
func Wait(ctx context.Context, wait time.Duration, changed func([]Missing)) []Missing {
	over := time.After(wait)
	last := "?"
	for n := 0; ; n++ {
		missing := look(ctx)
		if text := Text(missing); text != last {
			changed(missing)
			last = text
		}
		if len(missing) == 0 || wait <= 0 {
			return missing
		}
		select {
		case <-ctx.Done():
			return missing
		case <-over:
			return missing
		case <-time.After(pause(n)):
		}
	}
}

func look(ctx context.Context) []Missing {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return Check(Observe(ctx))
}

// Text is what is missing as text, two lines each.
func Text(missing []Missing) string {
	if len(missing) == 0 {
		return "ready for k3s: the baseline holds\n"
	}
	var s strings.Builder
	fmt.Fprintf(&s, "not ready for k3s, %d missing:\n", len(missing))
	for _, m := range missing {
		fmt.Fprintf(&s, "  %s: %s\n", m.Item, m.What)
		if m.Hint != "" {
			fmt.Fprintf(&s, "    hint: %s\n", m.Hint)
		}
	}
	return s.String()
}

// Announce tells the world: the marker, the login prompts, the kernel log and with
// it the consoles.
func Announce(ctx context.Context, node string, missing []Missing) error {
	if len(missing) == 0 {
		if err := os.MkdirAll(filepath.Dir(Marker), 0o755); err != nil {
			return fmt.Errorf("announcing: %w", err)
		}
		if err := renameio.WriteFile(Marker, []byte(node+"\n"), 0o644); err != nil {
			return fmt.Errorf("announcing: %w", err)
		}
	}
	line := fmt.Sprintf("slipway: %s is ready for k3s", node)
	if len(missing) > 0 {
		line = fmt.Sprintf("slipway: %s is not ready for k3s, %d missing; log in and run slipway-node ready", node, len(missing))
	}
	if err := os.MkdirAll(filepath.Dir(issue), 0o755); err != nil {
		return fmt.Errorf("announcing: %w", err)
	}
	if err := renameio.WriteFile(issue, []byte(line+"\n"+hostKeys(keyDir)+"\n"), 0o644); err != nil {
		return fmt.Errorf("announcing: %w", err)
	}
	// <28> is facility daemon, severity warning: it reaches quiet consoles too.
	_ = os.WriteFile("/dev/kmsg", []byte("<28>"+line+"\n"), 0)
	// Login prompts that stand already are drawn again; without any this does nothing.
	_ = exec.CommandContext(ctx, "/usr/sbin/agetty", "--reload").Run()
	return nil
}
