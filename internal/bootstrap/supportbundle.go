package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/bootstrap/kube"
	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/bootstrap/support"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/payload/yamlform"
	"github.com/slipway/slipway/internal/sequence"
)

// Limits of a support bundle: for one source, and bytes of one file.
const (
	supportEach = time.Minute
	supportMost = 8 << 20
)

// Support writes a bundle about nodes, all of the profile when none are named, and
// about the cluster. plan adds what Plan tells; it may be nil.
func (s *Session) Support(ctx context.Context, w io.Writer, nodes []string, plan func(context.Context) ([]byte, error), tell sequence.Tell) (support.Result, error) {
	// What is known to be secret must be known here, or it could not be taken out.
	if _, _, err := s.Unseal(s.Redactor); err != nil && !material.Missing(err) {
		return support.Result{}, fmt.Errorf("a bundle is written only by who can tell what must not be in it: %w", err)
	}
	if len(nodes) == 0 {
		nodes = s.names()
	}
	sources := s.local(plan)
	for _, node := range nodes {
		sources = append(sources, s.onNode(node)...)
	}
	sources = append(sources, s.inCluster()...)
	return support.Bundle{Sources: sources, Redact: s.Redactor.Text, Each: supportEach, Most: supportMost, Now: s.Now()}.Write(ctx, w, tell)
}

// local is what this machine knows.
func (s *Session) local(plan func(context.Context) ([]byte, error)) []support.Source {
	out := []support.Source{
		{Name: "profile.yaml", Read: func(context.Context) ([]byte, error) { return os.ReadFile(s.Profile) }},
		{Name: "status.json", Read: func(ctx context.Context) ([]byte, error) {
			st, err := s.Status(ctx)
			data, _ := json.MarshalIndent(st, "", "  ")
			return data, err
		}},
	}
	if plan != nil {
		out = append(out, support.Source{Name: "plan.txt", Read: plan})
	}
	return out
}

// onNode are the questions to a node. None asks for a file that holds a secret.
func (s *Session) onNode(node string) []support.Source {
	var out []support.Source
	for _, q := range []struct{ name, command string }{
		{"facts.json", "slipway-node facts -o json"},
		{"record.json", "slipway-node status -o json"},
		{"units.txt", "systemctl --no-pager --plain list-units --all"},
		{"failed.txt", "systemctl --no-pager --plain --failed"},
		{"k3s.txt", "systemctl --no-pager --full status k3s k3s-agent; k3s --version"},
		{"k3s.log", "journalctl --no-pager -o short-iso-precise -u k3s -u k3s-agent -n 20000"},
		{"journal.log", "journalctl --no-pager -o short-iso-precise -b -n 20000"},
		{"kernel.log", "journalctl --no-pager -k -b -n 5000"},
		{"cloud-init.txt", "cloud-init status --long --format json"},
		{"network.txt", "ip -brief address; ip route; ss -lntup"},
		{"disks.txt", "lsblk -o NAME,SIZE,TYPE,FSTYPE,LABEL,UUID,SERIAL,MOUNTPOINTS; df -h"},
		{"k3s-config.txt", "cd /etc/rancher/k3s && for f in config.yaml config.yaml.d/*.yaml; do test -f $f && echo \"# $f\" && cat $f; done"},
		{"pods.txt", "ls -l /var/log/pods 2>/dev/null; crictl ps -a 2>/dev/null"},
	} {
		out = append(out, support.Source{Name: path.Join("nodes", node, q.name), Read: func(ctx context.Context) ([]byte, error) {
			return s.node(node).Run(ctx, q.command, nil)
		}})
	}
	return out
}

// inCluster are the kinds of objects that are listed, Secrets not among them.
func (s *Session) inCluster() []support.Source {
	var out []support.Source
	for _, k := range []struct{ api, kind string }{
		{"v1", "Node"}, {"v1", "Pod"}, {"v1", "Event"}, {"apps/v1", "DaemonSet"}, {"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"},
		{"kustomize.toolkit.fluxcd.io/v1", "Kustomization"}, {"helm.toolkit.fluxcd.io/v2", "HelmRelease"}, {"source.toolkit.fluxcd.io/v1", "GitRepository"},
		{"cilium.io/v2", "CiliumNode"}, {"longhorn.io/v1beta2", "Volume"}, {"longhorn.io/v1beta2", "Replica"}, {"longhorn.io/v1beta2", "Node"},
	} {
		out = append(out, support.Source{Name: "cluster/" + strings.ToLower(k.kind) + "s.yaml", Read: func(ctx context.Context) ([]byte, error) {
			return s.listed(ctx, k.api, k.kind)
		}})
	}
	return out
}

func (s *Session) listed(ctx context.Context, api, kind string) ([]byte, error) {
	k, err := kube.Open(s.open)(ctx)
	if err != nil {
		return nil, err
	}
	list, err := k.List(ctx, api, kind, "", "")
	if errors.Is(err, object.ErrNotFound) {
		return nil, nil // the cluster does not know the kind
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, o := range list {
		if meta, ok := o["metadata"].(map[string]any); ok {
			delete(meta, "managedFields")
		}
		doc, err := yamlform.Marshal("---\n", o)
		if err != nil {
			return nil, err
		}
		out.Write(doc)
	}
	return out.Bytes(), nil
}
