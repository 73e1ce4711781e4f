package install

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type quiet struct{}

func (quiet) Say(string)    {}
func (quiet) Status(string) {}

// A server that is away refuses at once, a dead link takes its time with each try:
// both are waited for three to four minutes.
func TestDefaultPatience(t *testing.T) {
	for name, c := range map[string]struct {
		try   time.Duration
		tries int
	}{"refused at once": {0, 24}, "dead link": {30 * time.Second, 7}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, tries := time.Now(), 0
				env := Env{Screen: quiet{}, Patience: DefaultPatience(), Sleep: func(_ context.Context, d time.Duration) error {
					time.Sleep(d)
					return nil
				}}
				_, err := retry(t.Context(), env, "asking", func(context.Context) (struct{}, error) {
					time.Sleep(c.try)
					tries++
					return struct{}{}, errors.New("no answer")
				})
				if took := time.Since(begin); err == nil || took < 3*time.Minute || took > 4*time.Minute || tries != c.tries {
					t.Errorf("%d tries in %s: %v", tries, took, err)
				}
			})
		})
	}
}
