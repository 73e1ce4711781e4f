package console

import (
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	const text = "tty0                 -WU (EC  p  )    4:7\nttyS0                -W- (E   p a)    4:64\n\n"
	if got := Names(text); !slices.Equal(got, []string{"tty0", "ttyS0"}) {
		t.Errorf("got %v", got)
	}
}
