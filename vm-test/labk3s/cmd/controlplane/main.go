// Command controlplane holds the parts of a Kubernetes control plane that tests
// start one by one: an etcd member, the API server, the controller manager. They
// are the programs of the upstream projects; only the flags of etcd are fewer.
package main

import (
	"os"
	_ "time/tzdata" // a host of tests may have no time zones

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // the format json of their logs
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // their metrics
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// parts makes the command of a part. Only the one that runs is made, because each
// of them takes over the process's signal handling and global flags.
var parts = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"controller-manager": controllers.NewControllerManagerCommand,
	"etcd":               etcdCommand,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		os.Stderr.WriteString("usage: controlplane apiserver|controller-manager|etcd [flags]\n")
		os.Exit(2)
	}
	cmd := parts[os.Args[1]]()
	os.Args = append(os.Args[:1], os.Args[2:]...)
	os.Exit(cli.Run(cmd))
}
