package kube

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controlleroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubeletoptions "k8s.io/kubernetes/cmd/kubelet/app/options"

	"github.com/slipway/slipway/vm-test/labk3s/internal/pki"
	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

// The sharing of features is settled before any part is made, in tests as in k3s.
func TestMain(m *testing.M) {
	if err := Prepare(0); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestUserWins(t *testing.T) {
	got := Args{"a=1", "b=2", "c"}.with([]string{"b=3", "--c=4", "d=5", "d=6"})
	if want := (Args{"a=1", "b=3", "c=4", "d=5", "d=6"}); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

var some = settings.Settings{
	AdvertiseAddress: "192.0.2.1", ServiceCIDR: "10.43.0.0/16", ClusterCIDR: "10.42.0.0/16", ClusterDomain: "cluster.local",
	NodePorts: "30000-32767", SecretsEncryption: true,
}

// The parts know every flag that they are given: a new version may have dropped one.
func TestFlagsAreKnown(t *testing.T) {
	f := pki.At(t.TempDir())
	api := options.NewServerRunOptions()
	if err := apiArgs(some, f).parse("kube-apiserver", api.Flags(), api.GenericServerRunOptions.ComponentGlobalsRegistry); err != nil {
		t.Error(err)
	}
	if got := api.GenericServerRunOptions.AdvertiseAddress.String(); got != "192.0.2.1" {
		t.Errorf("the API server says to be at %s", got)
	}
	cm, err := controlleroptions.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := cm.Flags(controllers.KnownControllers(), controllers.ControllersDisabledByDefault(), controllers.ControllerAliases())
	if err := controllerArgs(some, f).parse("kube-controller-manager", flags, cm.ComponentGlobalsRegistry); err != nil {
		t.Error(err)
	}
	sched := scheduleroptions.NewOptions()
	if err := schedulerArgs(some, f).parse("kube-scheduler", *sched.Flags, sched.ComponentGlobalsRegistry); err != nil {
		t.Error(err)
	}
}

func TestKubeletFlags(t *testing.T) {
	k := Kubelet{
		NodeName: "n1", NodeIP: "192.0.2.1", ClusterDNS: "10.43.0.10", DNSDomain: "cluster.local", Socket: "/run/k3s/containerd/containerd.sock",
		ResolvConf: "/etc/resolv.conf", StaticPods: "/pods", Labels: []string{"a=b"}, Taints: []string{"c=d:NoSchedule"},
		SystemdCgroups: true, ProtectKernelDefaults: true, User: []string{"max-pods=50", "node-ip=192.0.2.9"},
	}
	flags := kubeletoptions.NewKubeletFlags()
	config, err := kubeletoptions.NewKubeletConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.AddFlags(fs)
	kubeletoptions.AddKubeletConfigFlags(fs, config)
	if err := k.args().into("kubelet", fs); err != nil {
		t.Fatal(err)
	}
	if config.CgroupDriver != "systemd" || config.MaxPods != 50 || flags.NodeIP != "192.0.2.9" || !config.ProtectKernelDefaults {
		t.Errorf("driver %q, pods %d, address %q", config.CgroupDriver, config.MaxPods, flags.NodeIP)
	}
	if got := flags.NodeLabels["a"]; got != "b" || !strings.HasSuffix(flags.NodeLabels["node.kubernetes.io/instance-type"], "k3s") {
		t.Errorf("the labels are %v", flags.NodeLabels)
	}
	if len(config.RegisterWithTaints) != 1 {
		t.Errorf("the taints are %v", config.RegisterWithTaints)
	}
}
