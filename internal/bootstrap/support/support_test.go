package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func text(s string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(s), nil }
}

func unpack(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(content)
	}
}

func bundle(sources ...Source) Bundle {
	return Bundle{
		Sources: sources, Each: time.Minute, Most: 100, Now: time.Unix(0, 0),
		Redact: func(s string) string { return strings.ReplaceAll(s, "canary-known", "<redacted>") },
	}
}

func TestBundle(t *testing.T) {
	var out bytes.Buffer
	r, err := bundle(
		Source{"n1/k3s.log", text("all is well")},
		Source{"n2/k3s.log", func(context.Context) ([]byte, error) {
			return []byte("half of it"), errors.New("cut off, canary-known")
		}},
		Source{"n3/k3s.log", func(ctx context.Context) ([]byte, error) { return nil, errors.New("not reachable") }},
		Source{"long.txt", text(strings.Repeat("x", 200) + "the end")},
	).Write(t.Context(), &out, func(string) {})
	if err != nil || r.Files != 3 || len(r.Missing) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	files := unpack(t, out.Bytes())
	if files["support/n1/k3s.log"] != "all is well" || files["support/n2/k3s.log"] != "half of it" {
		t.Errorf("files %q", files)
	}
	if want := "n2/k3s.log: cut off, <redacted>\nn3/k3s.log: not reachable\n"; files["support/missing.txt"] != want {
		t.Errorf("missing %q", files["support/missing.txt"])
	}
	if l := files["support/long.txt"]; !strings.HasPrefix(l, "... 107 bytes") || !strings.HasSuffix(l, "the end") {
		t.Errorf("long file %q", l)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"the canary-known one": "the <redacted> one",
		"a\n-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\nb":    "a\n<redacted private key>\nb",
		"joined with K10" + strings.Repeat("0a", 32) + "::server:canary done":         "joined with <redacted token> done",
		"key AGE-SECRET-KEY-1QQPQYRSZY.":                                              "key <redacted age key>.",
		"client-key-data: LS0tLS1CRUdJTg==":                                           "client-key-data: <redacted>",
		`{"token":"canary-canary","x":1}`:                                             `{"token":<redacted>,"x":1}`,
		"Authorization: Bearer canarycanary":                                          "Authorization: Bearer <redacted>",
		"--token-file /etc/rancher/k3s/token":                                         "--token-file /etc/rancher/k3s/token",
		"password=hunter22 and more":                                                  "password=<redacted> and more",
		"eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJl.c2lnbmF0dXJl is it":                    "<redacted token> is it",
		"a certificate\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----": "a certificate\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	} {
		if got := bundle().Clean(in); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestBundleEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	_, err := bundle(Source{"a", func(context.Context) ([]byte, error) { cancel(stop); return nil, nil }}, Source{"b", text("b")}).
		Write(ctx, io.Discard, func(string) {})
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}
