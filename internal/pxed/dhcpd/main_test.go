package dhcpd

import (
	"os"
	"testing"

	"github.com/slipway/slipway/vm-test/netns"
)

func TestMain(m *testing.M) { os.Exit(netns.Main(m)) }
