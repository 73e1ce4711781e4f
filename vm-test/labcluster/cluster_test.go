package labcluster

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func join(s *server) string { return "server: https://" + s.ip + ":6443" }

// formed is a cluster of three servers, each of which joined by the one before.
func formed(t *testing.T) []*server {
	t.Helper()
	servers := newServers(t, 3)
	n1, n2, n3 := servers[0], servers[1], servers[2]
	n1.configure(t, "cluster-init: true", "token: "+secret)
	n1.up(t)
	n2.configure(t, join(n1), "token: "+secret)
	n2.up(t)
	full := strings.TrimSpace(string(read(t, n1.path("data", "server", "node-token"))))
	n3.configure(t, join(n2), "token: "+full)
	n3.up(t)
	return servers
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// voters are the nodes of the members that vote; a learner fails the test.
func voters(t *testing.T, s *server) []string {
	t.Helper()
	var out []string
	for _, m := range s.members(t) {
		node, _, _ := strings.Cut(m.Name, "-")
		if m.IsLearner {
			node += " (learner)"
		}
		out = append(out, node)
	}
	slices.Sort(out)
	return out
}

func wantVoters(t *testing.T, s *server, want ...string) {
	t.Helper()
	if got := voters(t, s); !slices.Equal(got, want) {
		t.Fatalf("the members of etcd are %v, want %v", got, want)
	}
}

const (
	configMaps  = "/api/v1/namespaces/default/configmaps"
	kubeSystem  = "/api/v1/namespaces/kube-system"
	nodePath    = "/api/v1/nodes"
	memberNote  = "etcd.k3s.cattle.io/node-name"
	addressNote = "etcd.k3s.cattle.io/node-address"
)

func TestThreeServers(t *testing.T) {
	servers := formed(t)
	n1, n2, n3 := servers[0], servers[1], servers[2]
	wantVoters(t, n3, "n1", "n2", "n3")
	cluster := n1.object(t, "GET", kubeSystem, "").Metadata.UID
	n1.object(t, "POST", configMaps, `{"metadata":{"name":"kept"},"data":{"k":"v"}}`)

	t.Run("files", func(t *testing.T) { files(t, servers) })
	t.Run("kubernetes service", func(t *testing.T) {
		n1.until(t, "three endpoints", func() error { return endpoints(t, n1, n1.ip, n2.ip, n3.ip) })
	})
	t.Run("secrets are encrypted", func(t *testing.T) { encrypted(t, n2) })
	t.Run("manifests", func(t *testing.T) { manifests(t, n3) })
	t.Run("tools", func(t *testing.T) { tools(t, n2) })
	t.Run("node passwords", func(t *testing.T) { nodePasswords(t, n2) })
	t.Run("strangers", func(t *testing.T) { strangers(t, servers) })

	// The first server is lost with its disk. Its node exists, as it would with a kubelet.
	n1.object(t, "POST", nodePath, `{"metadata":{"name":"n1"}}`)
	n1.until(t, "its node says which member it is", func() error { return marked(t, n1) })
	n1.kill()
	n1.wipe(t)
	n2.until(t, "it writes without the first", func() error {
		status, text := n2.ask(t, "POST", configMaps, `{"metadata":{"name":"meanwhile"}}`)
		if status != http.StatusCreated && status != http.StatusConflict {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
	n1.configure(t, join(n3), "token: "+secret)
	n1.refuses(t, "duplicate node name found")
	wantVoters(t, n2, "n1", "n2", "n3")

	n2.object(t, "DELETE", nodePath+"/n1", "")
	n2.until(t, "the node is gone", func() error { return gone(t, n2, nodePath+"/n1") })
	wantVoters(t, n2, "n2", "n3")

	n1.up(t)
	wantVoters(t, n1, "n1", "n2", "n3")
	if got := n1.object(t, "GET", kubeSystem, "").Metadata.UID; got != cluster {
		t.Errorf("the cluster was %s and is %s", cluster, got)
	}
	for _, name := range []string{"kept", "meanwhile"} {
		n1.object(t, "GET", configMaps+"/"+name, "")
	}

	// Another is removed while it lives: it ends, and comes back as a new member.
	before := name(t, n2, n2)
	remove(t, n1, n2)
	if code := n2.ended(t); code == 0 || !strings.Contains(n2.said(t), "removed from the cluster") {
		t.Errorf("a removed member ended with %d\n%s", code, n2.said(t))
	}
	wantVoters(t, n1, "n1", "n3")
	n2.up(t)
	wantVoters(t, n2, "n1", "n2", "n3")
	if after := name(t, n1, n2); after == before {
		t.Errorf("the member is %s again", after)
	}

	// All of them end when told to, and go on with what they have.
	for _, s := range servers {
		s.stop(t)
	}
	for _, s := range servers {
		s.start(t)
	}
	for _, s := range servers {
		s.until(t, "its API is ready again", func() error {
			if status, text := s.ask(t, "GET", configMaps+"/kept", ""); status != http.StatusOK {
				return fmt.Errorf("%d %s", status, text)
			}
			return nil
		})
	}
	wantVoters(t, n3, "n1", "n2", "n3")

	// Two are lost for good: the one that is left forgets them, when told to.
	for _, s := range servers {
		s.kill()
	}
	n1.configure(t, "cluster-reset: true")
	n1.start(t)
	if code := n1.ended(t); code != 0 {
		t.Errorf("the reset ended with %d\n%s", code, n1.said(t))
	}
	n1.configure(t)
	n1.up(t)
	wantVoters(t, n1, "n1")
	n1.object(t, "GET", configMaps+"/kept", "")
}

func files(t *testing.T, servers []*server) {
	ca := read(t, servers[0].path("data", "server", "tls", "server-ca.crt"))
	for _, s := range servers {
		if got := read(t, s.path("data", "server", "tls", "server-ca.crt")); string(got) != string(ca) {
			t.Errorf("%s has another CA", s.name)
		}
		if got := read(t, s.path("data", "server", "token")); !strings.HasPrefix(string(got), "K10") || !strings.HasSuffix(string(got), "::server:"+secret+"\n") {
			t.Errorf("the token of %s is %q", s.name, got)
		}
		st, err := os.Stat(s.path("k3s.yaml"))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("k3s.yaml of %s: %v, %v", s.name, st, err)
		}
	}
}

// endpoints compares where the service "kubernetes" leads to.
func endpoints(t *testing.T, s *server, want ...string) error {
	o := s.object(t, "GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes", "")
	var got []string
	for _, e := range o.Endpoints {
		got = append(got, e.Addresses...)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the endpoints are %v, want %v", got, want)
	}
	return nil
}

func encrypted(t *testing.T, s *server) {
	s.object(t, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"hidden"},"stringData":{"k":"plain-as-day"}}`)
	s.tool(t, "etcd-snapshot", "save", "--config", s.path("config.yaml"), "--snapshot-compress=false", "--name=look")
	found, err := filepath.Glob(s.path("data", "server", "db", "snapshots", "look-n2-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the snapshots are %v, %v", found, err)
	}
	text := string(read(t, found[0]))
	if !strings.Contains(text, "/registry/secrets/default/hidden") || strings.Contains(text, "plain-as-day") {
		t.Error("the Secret is not in etcd, or not encrypted there")
	}
	list := s.tool(t, "etcd-snapshot", "ls", "--config", s.path("config.yaml"))
	if !strings.Contains(list, filepath.Base(found[0])) {
		t.Errorf("the list of snapshots is\n%s", list)
	}
}

func manifests(t *testing.T, s *server) {
	name := s.path("data", "server", "manifests", "mine.yaml")
	write := func(value string) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-file}\ndata: {k: " + value + "}\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, value := range []string{"one", "two"} {
		write(value)
		s.until(t, "the manifest is applied", func() error {
			status, text := s.ask(t, "GET", configMaps+"/from-file", "")
			if status != http.StatusOK || !strings.Contains(text, `"k":"`+value+`"`) {
				return fmt.Errorf("%d %s", status, text)
			}
			return nil
		})
	}
	s.object(t, "GET", "/apis/apps/v1/namespaces/kube-system/deployments/coredns", "")
}

func tools(t *testing.T, s *server) {
	if got := s.tool(t, "kubectl", "get", "configmap", "kept", "-o", "jsonpath={.data.k}"); got != "v" {
		t.Errorf("kubectl says %q", got)
	}
	if got := s.tool(t, "--version"); !strings.Contains(got, "v1.34.4+labk3s1") {
		t.Errorf("the version is %q", got)
	}
}

// strangers are servers that must not come in: with another secret, another cluster's
// token, another configuration.
func strangers(t *testing.T, servers []*server) {
	n1 := servers[0]
	stranger := &server{name: "n4", ip: n1.ip, dir: t.TempDir(), host: n1.host, bin: n1.bin}
	stranger.configure(t, join(n1), "token: wrong")
	stranger.refuses(t, "401 Unauthorized")
	stranger.configure(t, join(n1), "token: K10"+strings.Repeat("0", 64)+"::server:"+secret)
	stranger.refuses(t, "token CA hash does not match the Cluster CA certificate hash")
	stranger.configure(t, join(n1), "token: "+secret, "cluster-cidr: 10.99.0.0/16", "cluster-domain: other.test")
	stranger.refuses(t, "critical configuration value mismatch between servers")
	stranger.configure(t, "token: "+secret)
	stranger.refuses(t, "set cluster-init to start a cluster, or server to join one")
	wantVoters(t, n1, "n1", "n2", "n3")
}

// marked reports whether a server's node says which member of etcd it is.
func marked(t *testing.T, s *server) error {
	o := s.object(t, "GET", nodePath+"/"+s.name, "")
	m := o.Metadata
	if m.Annotations[memberNote] != name(t, s, s) || m.Annotations[addressNote] != s.ip || m.Labels["node-role.kubernetes.io/etcd"] != "true" {
		return fmt.Errorf("it says %v %v", m.Annotations, m.Labels)
	}
	return nil
}

func gone(t *testing.T, s *server, path string) error {
	status, text := s.ask(t, "GET", path, "")
	if status != http.StatusNotFound {
		return fmt.Errorf("%d %s", status, text)
	}
	return nil
}

// name is the name of a server's member, asked of another.
func name(t *testing.T, asked, of *server) string {
	t.Helper()
	for _, m := range asked.members(t) {
		if strings.HasPrefix(m.Name, of.name+"-") {
			return m.Name
		}
	}
	t.Fatalf("%s has no member of etcd", of.name)
	return ""
}

// remove removes a server's member, as somebody would who speaks with etcd.
func remove(t *testing.T, asked, which *server) {
	t.Helper()
	var list struct{ Members []struct{ ID, Name string } }
	asked.etcd(t, "/v3/cluster/member/list", "{}", &list)
	for _, m := range list.Members {
		if strings.HasPrefix(m.Name, which.name+"-") {
			var answer any
			asked.etcd(t, "/v3/cluster/member/remove", fmt.Sprintf(`{"ID":%q}`, m.ID), &answer)
		}
	}
}
