// Package gomod takes directories out of Go modules: a source of charts and
// manifests that is verified by the module's own hash, and that can be reached
// where only a module proxy can.
package gomod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway/slipway/internal/diag"
	"github.com/slipway/slipway/internal/hosttool"
)

// timeout bounds one download: the largest modules that are used here have
// less than 200 MB.
const timeout = 10 * time.Minute

// Module is a module in the module cache.
type Module struct {
	Dir string // its files, unpacked
	H1  string // hash of its zip, as in go.sum
}

// Download has the host's go fetch path@version. Where from, and which checksum
// database is asked, is what the user's Go environment says.
func Download(ctx context.Context, module string) (Module, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("module %s: not there after %s", module, timeout))
	defer cancel()
	empty, err := os.MkdirTemp("", "slipway-gomod-") // outside of any module of the caller
	if err != nil {
		return Module{}, fmt.Errorf("module %s: %w", module, err)
	}
	defer os.RemoveAll(empty)
	out, err := hosttool.Output(ctx, hosttool.Cmd{Name: "go", Args: []string{"mod", "download", "-json", module}, Dir: empty, Env: goEnv(os.Environ())})
	var answer struct{ Dir, Sum, Error string }
	if jerr := json.Unmarshal(out, &answer); jerr == nil && answer.Error != "" {
		return Module{}, diag.WithHint(fmt.Errorf("module %s: %s", module, answer.Error), "check the network, GOPROXY and the version")
	}
	if err != nil {
		return Module{}, fmt.Errorf("module %s: %w", module, err)
	}
	if answer.Dir == "" || answer.Sum == "" {
		return Module{}, fmt.Errorf("module %s: go did not say where it is", module)
	}
	return Module{Dir: answer.Dir, H1: answer.Sum}, nil
}

// goEnv passes on what decides about caches, proxies and checksums. GOFLAGS is
// ours: the caller's may name a vendor directory or a go.mod.
func goEnv(environ []string) []string {
	keep := []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "GOPATH", "GOMODCACHE", "GOCACHE", "GOENV", "GOPROXY", "GOPRIVATE", "GONOPROXY",
		"GOSUMDB", "GONOSUMDB", "GOINSECURE", "GOROOT", "GOTOOLCHAIN", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
	env := []string{"GOFLAGS=-mod=mod", "GOWORK=off"}
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(keep, name) {
			env = append(env, kv)
		}
	}
	return env
}

// Open reads what is at sub: a file as it is, a directory as its deterministic tar.
func (m Module) Open(ctx context.Context, sub string) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(m.write(ctx, w, sub)) }()
	return r
}

func (m Module) write(ctx context.Context, w io.Writer, sub string) error {
	name := filepath.Join(m.Dir, filepath.FromSlash(sub))
	st, err := os.Stat(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the module has no %s", sub)
		}
		return err
	}
	if st.IsDir() {
		return writeTar(ctx, w, name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
