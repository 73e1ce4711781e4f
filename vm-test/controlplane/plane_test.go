package controlplane

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

func TestOneMember(t *testing.T) {
	p := Start(t, Options{})
	if v := p.must(t, "GET", "/version", "")["gitVersion"]; v != "v1.34.4" {
		t.Errorf("the API server says that it is %v", v)
	}
	configMap := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"round"},"data":{"k":"v"}}`
	p.must(t, "POST", "/api/v1/namespaces/default/configmaps", configMap)

	p.StopAPI()
	if _, err := p.Client().Get(p.Server() + "/readyz"); err == nil {
		t.Error("the API server answers after it was stopped")
	}
	p.StartAPI()
	got := p.must(t, "GET", "/api/v1/namespaces/default/configmaps/round", "")
	if data, _ := got["data"].(map[string]any); data["k"] != "v" {
		t.Errorf("the ConfigMap came back as %v", got)
	}
	p.customResource(t)

	// RBAC: a user whom nothing allows anything is refused.
	nobody := p.User("nobody").client(t)
	if status, _ := p.do(t, nobody, "GET", "/api/v1/namespaces/default/configmaps", ""); status != http.StatusForbidden {
		t.Errorf("a user without rights gets %d", status)
	}
}

// customResource defines a kind of object and makes one.
func (p *Plane) customResource(t *testing.T) {
	t.Helper()
	p.must(t, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "ships.test.example"},
		"spec": {"group": "test.example", "scope": "Cluster",
			"names": {"plural": "ships", "kind": "Ship"},
			"versions": [{"name": "v1", "served": true, "storage": true,
				"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`)
	ship := `{"apiVersion":"test.example/v1","kind":"Ship","metadata":{"name":"a"}}`
	for deadline := time.Now().Add(startTime); ; time.Sleep(50 * time.Millisecond) {
		status, body := p.do(t, p.Client(), "POST", "/apis/test.example/v1/ships", ship)
		if status == http.StatusCreated {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("making an object of a new kind: %d %s", status, body)
		}
	}
}

func TestThreeMembers(t *testing.T) {
	p := Start(t, Options{Etcd: 3})
	var names []string
	for _, m := range p.Members() {
		names = append(names, m.Name)
	}
	if got := p.memberNames(t, 0); !slices.Equal(got, names) {
		t.Fatalf("etcd has the members %v, not %v", got, names)
	}
	p.Kill(0)
	configMap := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two-of-three"}}`
	p.must(t, "POST", "/api/v1/namespaces/default/configmaps", configMap)
	if got := p.memberNames(t, 1); !slices.Equal(got, names) {
		t.Errorf("after one was killed etcd has the members %v, not %v", got, names)
	}
	p.Restart(0)

	learner := p.JoinEtcd(true)
	if list := p.memberList(t, 1); len(list) != 4 || !list[3].IsLearner || list[3].Name != p.Members()[learner].Name {
		t.Errorf("with a learner the members are %+v", list)
	}
}

func TestControllers(t *testing.T) {
	p := Start(t, Options{Controllers: true})
	p.must(t, "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"brief"}}`)
	p.must(t, "DELETE", "/api/v1/namespaces/brief", "")
	for deadline := time.Now().Add(startTime); ; time.Sleep(100 * time.Millisecond) {
		status, body := p.do(t, p.Client(), "GET", "/api/v1/namespaces/brief", "")
		if status == http.StatusNotFound {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a deleted namespace is still there: %s", body)
		}
	}
}

type etcdMember struct {
	Name      string
	IsLearner bool
}

// memberList asks a member over its gRPC gateway who belongs to the cluster.
func (p *Plane) memberList(t *testing.T, i int) []etcdMember {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: p.EtcdTLS()}, Timeout: 10 * time.Second}
	answer, err := client.Post(p.Members()[i].ClientURL+"/v3/cluster/member/list", "application/json", bytes.NewBufferString("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var list struct{ Members []etcdMember }
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Members, func(a, b etcdMember) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return list.Members
}

func (p *Plane) memberNames(t *testing.T, i int) []string {
	t.Helper()
	var out []string
	for _, m := range p.memberList(t, i) {
		out = append(out, m.Name)
	}
	return out
}

func (p *Plane) do(t *testing.T, c *http.Client, method, path, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.Server()+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, text
}

func (p *Plane) must(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	status, text := p.do(t, p.Client(), method, path, body)
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil || status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return out
}
