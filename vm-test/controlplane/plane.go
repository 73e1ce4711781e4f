package controlplane

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway/slipway/vm-test/labbin"
)

// startTime bounds every wait. A plane is up in a few seconds on an idle machine.
const startTime = 3 * time.Minute

// Options say what a plane is made of.
type Options struct {
	Etcd        int      // members, 1 when zero
	Controllers bool     // kube-controller-manager too, without what judges nodes
	ServiceCIDR string   // 10.43.0.0/16 when empty
	APIFlags    []string // further flags of the API server
}

// Plane is a running control plane. Its methods fail the test that started it when
// something does not work; they are for one goroutine at a time.
type Plane struct {
	t       testing.TB
	options Options
	bin     string
	dir     string
	net     string // the first three numbers of its addresses, "127.77.13"

	kubeCA, etcdCA *authority
	members        []*member
	api            *process
	controllers    *process
}

// Start starts a plane, and returns when its API server is ready. The programs are
// built first when they have not been yet, which takes minutes.
func Start(t testing.TB, o Options) *Plane {
	t.Helper()
	bin, err := labbin.Build(t.Context(), "controlplane")
	if err != nil {
		t.Fatal(err)
	}
	if o.Etcd == 0 {
		o.Etcd = 1
	}
	if o.ServiceCIDR == "" {
		o.ServiceCIDR = "10.43.0.0/16"
	}
	p := &Plane{t: t, options: o, bin: bin, dir: t.TempDir(), net: loopback()}
	p.kubeCA, p.etcdCA = newAuthority(t, "kubernetes"), newAuthority(t, "etcd")
	p.writeKeys()
	p.startEtcd(o.Etcd)
	p.StartAPI()
	if o.Controllers {
		p.startControllers()
	}
	return p
}

// loopback picks a network of 127.0.0.0/8 at random. Only 127.0.0.1 is ever the
// near end of a connection, so nothing else can have taken a port in it.
func loopback() string {
	b := make([]byte, 2)
	rand.Read(b)
	return fmt.Sprintf("127.%d.%d", 16+int(b[0])%224, b[1])
}

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

// Address is the IP address of the API server.
func (p *Plane) Address() string { return p.net + ".100" }

// Server is the URL of the API server.
func (p *Plane) Server() string { return "https://" + p.Address() + ":6443" }

// Client speaks HTTP with the API server as a cluster administrator.
func (p *Plane) Client() *http.Client { return p.User("admin", "system:masters").client(p.t) }

// until calls f until it has no error, as long as alive says that this can come.
func (p *Plane) until(what string, alive func() error, f func(context.Context) error) {
	p.t.Helper()
	deadline := time.Now().Add(startTime)
	for {
		ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if dead := alive(); dead != nil {
			p.t.Fatalf("%s: %v", what, dead)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not within %s: %v", what, startTime, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
