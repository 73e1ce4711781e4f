package rescue

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/diag"
)

func TestOffers(t *testing.T) {
	other := Trouble{OtherEntry: "slot-b.conf", OtherOffered: true}
	trial := other
	trial.CountsTries = true
	shell := other
	shell.Shell = true
	tests := []struct {
		name    string
		trouble Trouble
		want    []Choice
		byself  Choice
	}{
		{"one slot", Trouble{}, []Choice{Retry, Restart}, Restart},
		{"blessed entry, other slot", other, []Choice{Retry, OtherSlot, Restart}, OtherSlot},
		{"entry on trial: the boot loader counts", trial, []Choice{Retry, OtherSlot, Restart}, Restart},
		{"shell allowed", shell, []Choice{Retry, OtherSlot, Shell, Restart}, OtherSlot},
		{"no other slot, shell", Trouble{Shell: true}, []Choice{Retry, Shell, Restart}, Restart},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			offers := tt.trouble.Offers()
			for n, want := range tt.want {
				got, ok := tt.trouble.Parse(string(rune('1' + n)))
				if !ok || got != want || offers[n].Choice != want {
					t.Errorf("answer %d is %v (%v), want %v", n+1, got, ok, want)
				}
			}
			for _, answer := range []string{"", "0", "9", "x", "1 ", "11"} {
				if got, ok := tt.trouble.Parse(answer); ok {
					t.Errorf("%q chooses %v", answer, got)
				}
			}
			if got := tt.trouble.Default(); got != tt.byself {
				t.Errorf("by itself it does %v, want %v", got, tt.byself)
			}
		})
	}
}

func TestText(t *testing.T) {
	text := Trouble{Slot: "a", Doing: "verifying the slot",
		Err: diag.WithHint(errors.New("it is damaged"), "write it again"+strings.Repeat(" and again", 20)), OtherEntry: "slot-b.conf", OtherOffered: true}.Text()
	for _, want := range []string{"from slot a", "while:  verifying the slot", "error:  it is damaged", "hint:   write it again",
		"1  try again", "2  restart with the other slot (slot-b.conf)", "3  restart\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the menu does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "shell") {
		t.Errorf("a shell is offered though none is allowed:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 80 {
			t.Errorf("line is wider than a console: %q", line)
		}
	}
}

func TestBuiltinCommands(t *testing.T) {
	var out bytes.Buffer
	if err := runCommand(&out, []string{"help"}); err != nil || !strings.Contains(out.String(), "dmesg") {
		t.Errorf("help: %v\n%s", err, out.String())
	}
	out.Reset()
	if err := runCommand(&out, []string{"mounts"}); err != nil || !strings.Contains(out.String(), " / ") {
		t.Errorf("mounts: %v\n%s", err, out.String())
	}
	if err := runCommand(&out, []string{"ls", "/nonexistent"}); err == nil {
		t.Error("listing nothing succeeds")
	}
	if err := runCommand(&out, []string{"rm"}); err == nil || !strings.Contains(err.Error(), "help") {
		t.Errorf("unknown command: %v", err)
	}
}
