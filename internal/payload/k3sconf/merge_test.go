package k3sconf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway/slipway/internal/payload/k3sconf"
)

// The rules of k3s's documentation, each with the file that shows it.
func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		base    string
		dropins map[string]string
		want    string
	}{
		{"last value counts", "debug: true\nnode-label: [a=1, b=2]\n",
			map[string]string{"b.yaml": "node-label: [c=3]\n", "a.yaml": "node-label: [d=4]\ndebug: false\n"},
			"debug: \"false\"\nnode-label:\n  - \"c=3\"\n"},
		{"a plus appends, in the order of names", "node-label: [a=1]\n",
			map[string]string{"20.yaml": "node-label+: [c=3]\n", "10.yml": "node-label+: b=2\n"},
			"node-label:\n  - \"a=1\"\n  - \"b=2\"\n  - \"c=3\"\n"},
		{"later files need the plus as well", "node-label: [a=1]\n",
			map[string]string{"10.yaml": "node-label+: [b=2]\n", "20.yaml": "node-label: [c=3]\n"},
			"node-label:\n  - \"c=3\"\n"},
		{"a plus on a new key sets it", "debug: true\n", map[string]string{"a.yaml": "node-taint+: [x=y:NoExecute]\n"},
			"debug: \"true\"\nnode-taint:\n  - \"x=y:NoExecute\"\n"},
		{"a plus makes a list of a single value", "kubelet-arg: max-pods=20\n", map[string]string{"a.yaml": "kubelet-arg+: v=2\n"},
			"kubelet-arg:\n  - \"max-pods=20\"\n  - v=2\n"},
		{"upper case sorts first, other files are not read", "v: 1\n",
			map[string]string{"a.YAML": "v: 3\n", "B.yaml": "v: 2\n", "c.txt": "v: 9\n", "d.yaml.bak": "v: 9\n"}, "v: \"3\"\n"},
		{"truth values of YAML 1.1", "debug: yes\nalsologtostderr: off\nlog: \"yes\"\n", nil, "debug: \"true\"\nalsologtostderr: \"false\"\nlog: \"yes\"\n"},
		{"empty files change nothing", "debug: true\n", map[string]string{"a.yaml": "", "b.yaml": "# nothing yet\n"}, "debug: \"true\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dropins := map[string][]byte{}
			for name, text := range tt.dropins {
				dropins[name] = []byte(text)
			}
			got, findings := k3sconf.Merge([]byte(tt.base), dropins)
			want := strings.ReplaceAll(tt.want, "- v=2", "- \"v=2\"")
			if string(got) != want || len(findings) > 0 {
				t.Errorf("got\n%s%v\nwant\n%s", got, findings, want)
			}
		})
	}
}

// Each drop-in undoes something that was decided, and is refused with its place and
// with what to write instead.
func TestDropInsThatAreRefused(t *testing.T) {
	c := load(t, "dev")
	joining := render(t, c, c.Nodes[1], k3sconf.Join{Server: k3sconf.URL(c.Nodes[0].Address())})
	for _, tt := range []struct{ text, want, hint string }{
		{"disable: [metrics-server]\n", "enables traefik, servicelb, local-storage again", "write disable+: to append"},
		{"disable: []\n", "enables traefik, servicelb, local-storage again", "write disable+:"},
		{"disable: traefik\n", "enables servicelb, local-storage again", "write disable+:"},
		{"tls-san: [api.example.org]\n", "loses 192.168.124.10, 192.168.124.11, n1", "write tls-san+: to append"},
		{"disable+: [network-policy]\n", "network-policy is no item of disable: the key is disable-network-policy", "Slipway sets disable-network-policy already"},
		{"disable+: [metrics-server, kube-proxy]\n", "the key is disable-kube-proxy", "remove it"},
		{"disable+: coredns\n", "without CoreDNS", "let bootstrap finish"},
		{"flannel-backend: vxlan\n", "the key flannel-backend is Slipway's, and this changes it", "the container network is Cilium"},
		{"flannel-backend+: vxlan\n", "this changes it", "Cilium"},
		{"disable-kube-proxy: false\n", "disable-kube-proxy", "Cilium takes the place"},
		{"no-flannel: true\n", "no-flannel is flannel-backend", "Cilium"},
		{"cluster-init: true\n", "cluster-init is Slipway's", "bootstrap decides"},
		{"server: https://10.9.9.9:6443\n", "server is Slipway's", "bootstrap decides"},
		{"s: https://10.9.9.9:6443\n", "s is server", "bootstrap decides"},
		{"token: hunter2\n", "token is Slipway's", "a file of its own"},
		{"datastore-endpoint: mysql://root:hunter2@db\n", "datastore-endpoint is Slipway's", "embedded etcd"},
		{"data-dir: /mnt\n", "data-dir is Slipway's", "decided by the image"},
		{"cluster-cidr: 10.99.0.0/16\n", "cluster-cidr is Slipway's", "network.podCIDR"},
		{"disable: [hunter2\n", "not YAML: line", "does not start"},
		{"hunter2\n", "not a mapping", "one k3s flag a line"},
		{"tls-san:\n  a: hunter2\n", "a mapping where a value or a list belongs", "single values"},
	} {
		_, findings := k3sconf.Merge(joining, map[string][]byte{"90-x.yaml": []byte(tt.text)})
		if len(findings) != 1 {
			t.Errorf("%q: %v", tt.text, findings)
			continue
		}
		f := findings[0]
		if !strings.Contains(f.Message, tt.want) || !strings.Contains(f.Hint, tt.hint) || f.Pos.File != k3sconf.DropInDir+"/90-x.yaml" {
			t.Errorf("%q: %s", tt.text, f)
		}
		if strings.Contains(fmt.Sprint(f), "hunter2") {
			t.Errorf("%q: the finding repeats a value: %s", tt.text, f)
		}
	}
}

func TestDropInsThatAreFine(t *testing.T) {
	c := load(t, "dev")
	base := render(t, c, c.Nodes[0], k3sconf.Join{Server: k3sconf.URL(c.Nodes[1].Address())})
	for _, text := range []string{
		"disable+: [metrics-server]\n", "tls-san+: api.example.org\n", "disable: [traefik, servicelb, local-storage, metrics-server]\n",
		"disable: traefik,servicelb,local-storage\n", "flannel-backend: none\n", "secrets-encryption: yes\n", "debug: true\n",
		"etcd-snapshot-retention: 40\n", "kube-apiserver-arg+: [audit-log-path=/var/log/audit.log]\n", "etcd-s3: true\netcd-s3-secret-key: x\n",
	} {
		merged, findings := k3sconf.Merge(base, map[string][]byte{"90-x.yaml": []byte(text)})
		if len(findings) > 0 {
			t.Errorf("%q: %v", text, findings)
		}
		again, findings := k3sconf.Merge(merged, nil)
		if string(again) != string(merged) || len(findings) > 0 {
			t.Errorf("%q: merging the merged changes it: %v\n%s\n%s", text, findings, merged, again)
		}
	}
}

// What the documentation shows of drop-ins is judged as it says.
func TestDocumentedDropIns(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "PAYLOAD.md"))
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, "dev")
	base := render(t, c, c.Nodes[0], k3sconf.Join{Init: true})
	seen := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "    disable") {
			continue
		}
		seen++
		_, findings := k3sconf.Merge(base, map[string][]byte{"90.yaml": []byte(line)})
		if refused := strings.Contains(line, "# refused"); refused != (len(findings) > 0) {
			t.Errorf("%s: %v", strings.TrimSpace(line), findings)
		}
	}
	if seen != 2 {
		t.Errorf("%d examples", seen)
	}
}

// A loss is reported where it happens, and once.
func TestLossIsReportedOnce(t *testing.T) {
	c := load(t, "dev")
	base := render(t, c, c.Nodes[0], k3sconf.Join{Init: true})
	_, findings := k3sconf.Merge(base, map[string][]byte{
		"10.yaml": []byte("disable+: [metrics-server]\n"), "20.yaml": []byte("debug: true\ndisable: [metrics-server]\n"), "30.yaml": []byte("disable+: [runtimes]\n")})
	if len(findings) != 1 || findings[0].Pos.String() != k3sconf.DropInDir+"/20.yaml:2:1" {
		t.Errorf("got %v", findings)
	}
}

// Drop-ins that differ between servers are found before anything starts (pitfall 15).
func TestServersThatDisagree(t *testing.T) {
	c := load(t, "dev")
	join := k3sconf.Join{Server: k3sconf.URL(c.Nodes[0].Address())}
	configs := map[string][]byte{}
	for i, n := range c.Nodes {
		dropins := map[string][]byte{"10.yaml": []byte("disable+: [metrics-server]\ntls-san+: [extra-" + n.Name + "]\n")}
		if i == 2 {
			dropins["20.yaml"] = []byte("embedded-registry: true\n")
		}
		merged, findings := k3sconf.Merge(render(t, c, n, join), dropins)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		configs[n.Name] = merged
	}
	err := k3sconf.Agree(configs)
	if err == nil || !strings.Contains(err.Error(), `embedded-registry is "not set" on n1, "not set" on n2, "true" on n3`) || strings.Contains(err.Error(), "tls-san") {
		t.Errorf("got %v", err)
	}
	delete(configs, "n3")
	if err := k3sconf.Agree(configs); err != nil {
		t.Errorf("equal drop-ins: %v", err)
	}
	configs["n2"] = []byte("\t")
	if err := k3sconf.Agree(configs); err == nil || !strings.Contains(err.Error(), "node n2") {
		t.Errorf("unreadable: %v", err)
	}
}

// Every critical key is compared: a server without it, or with another value,
// does not agree.
func TestEveryCriticalKeyCounts(t *testing.T) {
	c := load(t, "dev")
	base := string(render(t, c, c.Nodes[0], k3sconf.Join{Init: true}))
	flags := string(k3sconf.ClusterFlags([]byte(base)))
	for _, key := range []string{"flannel-backend", "disable-kube-proxy", "disable-network-policy", "disable", "cluster-cidr", "service-cidr",
		"cluster-dns", "cluster-domain", "secrets-encryption", "disable-helm-controller"} {
		if !strings.Contains(flags, key+":") {
			t.Errorf("%s is not compared:\n%s", key, flags)
		}
		changed := strings.Replace(base, "\n"+key+":", "\nx-"+key+":", 1)
		if err := k3sconf.Agree(map[string][]byte{"a": []byte(base), "b": []byte(changed)}); err == nil || !strings.Contains(err.Error(), key+" is ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
