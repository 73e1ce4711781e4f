package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/payload/object"
	"github.com/slipway/slipway/internal/sequence"
)

func kubeconfig(server string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: c, user: {token: canary}}]\n", server)
}

// known answers what a client asks before it can read a Node.
func known(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case "/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node","verbs":["get","list"]},{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["get","list"]}]}`)
	default:
		return false
	}
	return true
}

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !known(w, r) {
			h(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c, err := New(kubeconfig(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.patience = time.Millisecond
	return c
}

var n1 = object.Ref{APIVersion: "v1", Kind: "Node", Name: "n1"}

// A server that cannot take a request gets it again, and in the end answers.
func TestPatience(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch asked {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close() // as a server that is killed
		default:
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`)
		}
	})
	o, err := c.Get(t.Context(), n1)
	if err != nil || object.Of(o) != n1 || asked != 3 {
		t.Errorf("%v, %v after %d questions", o, err, asked)
	}
}

// Without a server the wait ends with the context, and says what the last try met.
func TestWithoutServer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	tried := 0
	c, err := New(kubeconfig("https://192.0.2.1:6443"), func(context.Context, string, string) (net.Conn, error) {
		if tried++; tried > 2 {
			cancel(errors.New("enough"))
		}
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.patience = time.Millisecond
	_, err = c.Get(ctx, n1)
	if err == nil || !strings.Contains(err.Error(), "Node n1: enough") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("after %d tries: %v", tried, err)
	}
}

// What the server refuses for good is said at once, and that something is not there
// is told apart.
func TestErrors(t *testing.T) {
	asked := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if strings.HasSuffix(r.URL.Path, "/n1") {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not for you","reason":"Forbidden","code":403}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"NotFound","code":404}`)
	})
	if _, err := c.Get(t.Context(), n1); err == nil || !strings.Contains(err.Error(), "Node n1: not for you") || asked != 1 {
		t.Errorf("%v after %d questions", err, asked)
	}
	for _, r := range []object.Ref{{APIVersion: "v1", Kind: "Node", Name: "n2"}, {APIVersion: "x/v1", Kind: "Unknown", Name: "n"}} {
		if _, err := c.Get(t.Context(), r); !errors.Is(err, object.ErrNotFound) {
			t.Errorf("%s: %v", r, err)
		}
	}
	if err := c.Delete(t.Context(), object.Ref{APIVersion: "v1", Kind: "Node", Name: "n2"}); err != nil {
		t.Errorf("deleting what is not there: %v", err)
	}
	if _, err := c.Get(t.Context(), object.Ref{APIVersion: "v1", Kind: "Secret", Name: "s"}); err == nil || !strings.Contains(err.Error(), "has no namespace") {
		t.Errorf("a Secret without namespace: %v", err)
	}
	if list, err := c.List(t.Context(), "x/v1", "Unknown", "", ""); err != nil || len(list) != 0 {
		t.Errorf("a kind that is not known: %v, %v", list, err)
	}
}

func TestKubeconfigsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no kubeconfig": "canary: [",
		"a program":     strings.Replace(string(kubeconfig("https://a:1")), "token: canary", "exec: {apiVersion: client.authentication.k8s.io/v1, command: canary, interactiveMode: Never}", 1),
	} {
		_, err := New([]byte(text), nil)
		if err == nil || diag.HintOf(err) == "" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, hint %q", name, err, diag.HintOf(err))
		}
	}
}

// No error of a request tells the token.
func TestErrorsTellNoToken(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	if _, err := c.Get(t.Context(), n1); err == nil || strings.Contains(fmt.Sprintf("%+v %#v", err, err), "canary") {
		t.Errorf("got %v", err)
	}
}

func TestDecode(t *testing.T) {
	objects, err := Decode("f.yaml", []byte(`# only a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {count: "1"}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {replicas: 3}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, object.Of(o).Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("objects %q", names)
	}
	if _, whole := object.At(objects[2], "spec", "replicas").(int64); !whole {
		t.Errorf("replicas are %T", object.At(objects[2], "spec", "replicas"))
	}
	for text, want := range map[string]string{
		"kind: [": "f.yaml: document 1: ", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: ConfigMap\n": "f.yaml: document 2: no object",
	} {
		if _, err := Decode("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOpenGivesWhatItCannotGive(t *testing.T) {
	unseen := Open(func(context.Context) (*Client, error) { return nil, sequence.ErrUnseen })
	m := Manifest{Open: unseen}
	for name, err := range map[string]error{
		"changes": second(m.Changes(t.Context())), "get": second(unseen.Get(t.Context(), n1)),
		"list": second(unseen.List(t.Context(), "v1", "Node", "", "")), "apply": m.Apply(t.Context(), nil),
		"delete": unseen.Delete(t.Context(), n1), "metadata": second(unseen.Metadata(t.Context(), "v1", "Node", "")),
		"marks": second(Marks{Open: unseen}.Changes(t.Context())),
	} {
		if !errors.Is(err, sequence.ErrUnseen) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
