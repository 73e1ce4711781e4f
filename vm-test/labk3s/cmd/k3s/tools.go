package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"k8s.io/component-base/cli"
	kubeversion "k8s.io/component-base/version"
	"k8s.io/kubectl/pkg/cmd"

	"github.com/slipway/slipway/vm-test/labk3s/internal/cri"
)

// defaultKubeconfig is what `k3s kubectl` uses unless it is told otherwise.
const defaultKubeconfig = "/etc/rancher/k3s/k3s.yaml"

func kubernetesVersion() string { return kubeversion.Get().GitVersion }

func version([]string) error {
	v := kubeversion.Get()
	fmt.Printf("k3s version %s (labk3s)\ngo version %s\n", v.GitVersion, v.GoVersion)
	return nil
}

func kubectl(args []string) error {
	if os.Getenv("KUBECONFIG") == "" {
		if err := os.Setenv("KUBECONFIG", defaultKubeconfig); err != nil {
			return err
		}
	}
	os.Args = append([]string{"kubectl"}, args...)
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		var exit interface{ ExitStatus() int }
		if errors.As(err, &exit) {
			os.Exit(exit.ExitStatus())
		}
		return err
	}
	return nil
}

func ctr(args []string) error {
	return become("ctr", append([]string{"--address", cri.Socket, "--namespace", "k8s.io"}, args...))
}

func crictl(args []string) error {
	return become("crictl", append([]string{"--runtime-endpoint", "unix://" + cri.Socket}, args...))
}

// become turns this process into a program of the host.
func become(program string, args []string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	return syscall.Exec(path, append([]string{program}, args...), os.Environ())
}
