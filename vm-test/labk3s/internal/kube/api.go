package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

// APIPort is the port of the API server itself, on the loopback only: others come
// through the supervisor.
const APIPort = 6444

// LocalAPI is where the parts beside the API server reach it.
const LocalAPI = "https://127.0.0.1:6444"

// etcdURL is where the API server finds etcd.
const etcdURL = "https://127.0.0.1:2379"

func apiArgs(s settings.Settings, f pki.Files) Args {
	issuer := "https://kubernetes.default.svc." + s.ClusterDomain
	a := Args{
		"advertise-address=" + s.AdvertiseAddress,
		"allow-privileged=true",
		"anonymous-auth=false",
		"api-audiences=" + issuer + ",k3s",
		"authorization-mode=Node,RBAC",
		"bind-address=127.0.0.1",
		"client-ca-file=" + f.ClientCA().Cert,
		"enable-admission-plugins=NodeRestriction",
		"enable-aggregator-routing=true",
		"etcd-servers=" + etcdURL,
		"etcd-cafile=" + f.EtcdServerCA().Cert,
		"etcd-certfile=" + f.EtcdClient().Cert,
		"etcd-keyfile=" + f.EtcdClient().Key,
		"kubelet-certificate-authority=" + f.ServerCA().Cert,
		"kubelet-client-certificate=" + f.APIClient().Cert,
		"kubelet-client-key=" + f.APIClient().Key,
		"kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"profiling=false",
		"proxy-client-cert-file=" + f.AuthProxy().Cert,
		"proxy-client-key-file=" + f.AuthProxy().Key,
		"requestheader-allowed-names=system:auth-proxy",
		"requestheader-client-ca-file=" + f.RequestHeaderCA().Cert,
		"requestheader-extra-headers-prefix=X-Remote-Extra-",
		"requestheader-group-headers=X-Remote-Group",
		"requestheader-username-headers=X-Remote-User",
		"secure-port=" + strconv.Itoa(APIPort),
		"service-account-issuer=" + issuer,
		"service-account-key-file=" + f.ServiceKey(),
		"service-account-signing-key-file=" + f.ServiceKey(),
		"service-cluster-ip-range=" + s.ServiceCIDR,
		"service-node-port-range=" + s.NodePorts,
		"tls-cert-file=" + f.APIServing().Cert,
		"tls-private-key-file=" + f.APIServing().Key,
	}
	if s.SecretsEncryption {
		a = append(a, "encryption-provider-config="+f.Encryption())
	}
	return a.with(s.APIServerArgs)
}

// APIServer is an API server that has been made and not yet run.
type APIServer struct {
	Handler http.Handler // also answers requests that the supervisor has accepted
	Run     func(context.Context) error
}

// NewAPIServer makes the API server. etcd must be there.
func NewAPIServer(ctx context.Context, s settings.Settings, f pki.Files) (*APIServer, error) {
	opts := options.NewServerRunOptions()
	if err := apiArgs(s, f).parse("kube-apiserver", opts.Flags(), opts.GenericServerRunOptions.ComponentGlobalsRegistry); err != nil {
		return nil, err
	}
	completed, err := opts.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := advertise(config, s); err != nil {
		return nil, err
	}
	chain, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	server, err := app.CreateServerChain(chain)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	return &APIServer{Handler: server.GenericAPIServer.Handler, Run: prepared.Run}, nil
}

// advertise makes the service "kubernetes" point to the supervisor's port: the API
// server takes its endpoint from its listener, which is on the loopback. The client
// that it has for itself is made already and goes on to use the loopback.
func advertise(c *app.Config, s settings.Settings) error {
	ip, err := netip.ParseAddr(s.AdvertiseAddress)
	if err != nil {
		return fmt.Errorf("advertise-address: %w", err)
	}
	serving := c.KubeAPIs.ControlPlane.Generic.SecureServing
	if serving == nil {
		return errors.New("kube-apiserver: there is no listener")
	}
	public := net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(s.Port)))
	serving.Listener = renamed{serving.Listener, public}
	return nil
}

// renamed is a listener that says to be elsewhere.
type renamed struct {
	net.Listener
	addr net.Addr
}

func (r renamed) Addr() net.Addr { return r.addr }
