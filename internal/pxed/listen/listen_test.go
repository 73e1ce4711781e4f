package listen

import (
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/vm-test/netns"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }

// unprivileged runs f on a thread that has given up root; the thread then ends.
func unprivileged(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			panic(errno)
		}
		f()
	}()
	<-done
}

func TestUnprivilegedIsRefusedInWords(t *testing.T) {
	bridge := netns.Bridge(t, "192.0.2.1/24")
	unprivileged(func() {
		_, err := UDP(t.Context(), bridge, 67)
		if err == nil || err.Error() != "no permission to open udp port 67 on "+bridge || !strings.Contains(diag.HintOf(err), "CAP_NET_BIND_SERVICE") {
			t.Errorf("got %v (hint: %s)", err, diag.HintOf(err))
		}
	})
}

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1/24": "192.0.2.1/24", "": "has no IPv4 address"} {
		got, err := Address(netns.Bridge(t, address))
		if err == nil && got.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v", address, got, err)
		}
	}
	if _, err := Address("eno99"); err == nil || !strings.Contains(err.Error(), "there is no interface eno99") {
		t.Errorf("got %v", err)
	}
}

func TestHolder(t *testing.T) {
	tcp, err := net.Listen("tcp4", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	if got := Holder("tcp", 8080); !strings.HasPrefix(got, "listen.test (pid ") {
		t.Errorf("got %q", got)
	}
	if got := Holder("udp", 8080); got != "" {
		t.Errorf("got %q", got)
	}
}
