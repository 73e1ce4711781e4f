// Package home tells who installed this node that it has become ready. It is told
// once; a node does not depend on anybody hearing it.
package home

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// Path is where nodeinit puts the machine.Home of the seed partition. Only root may
// read it, and it does not outlive the boot.
const Path = "/run/slipway/home.json"

// Told says which install the node was last heard after.
const Told = "/var/lib/slipway/reported"

// Read reads whom to tell. It is an error of fs.ErrNotExist when nobody asked.
func Read(path string) (machine.Home, error) {
	var h machine.Home
	data, err := os.ReadFile(path)
	if err != nil {
		return h, fmt.Errorf("looking for who installed this node: %w", err)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("reading %s: %w", path, err)
	}
	return h, nil
}

// HostKeys are the public SSH host keys below dir.
func HostKeys(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "ssh_host_*_key.pub"))
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading host keys: %w", err)
		}
		keys = append(keys, strings.TrimSpace(string(data)))
	}
	return keys, nil
}

// retryPause is the pause between two tries.
const retryPause = 5 * time.Second

// Tell says that the node is ready, again and again until it is heard, refused, or
// the time is over.
func Tell(ctx context.Context, h machine.Home, r machine.Ready, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(wait, requestLimit))
	defer cancel()
	for over := time.Now().Add(wait); ; {
		err := send(ctx, h, r)
		if err == nil || errors.Is(err, ErrRefused) || !time.Now().Before(over) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// ErrRefused: the other side understood and said no; trying again does not help.
var ErrRefused = errors.New("refused")

// Bounds of one request.
const (
	requestLimit = 20 * time.Second
	answerLimit  = 64 << 10 // bytes
)

// send tells the first of the servers that answers.
func send(ctx context.Context, h machine.Home, r machine.Ready) error {
	var errs []error
	for server := range strings.SplitSeq(h.Server, ",") {
		err := sendTo(ctx, server, h.Ticket, r)
		if err == nil || errors.Is(err, ErrRefused) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func sendTo(ctx context.Context, server, ticket string, r machine.Ready) error {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return fmt.Errorf("%w: %q is no address to tell anything to", ErrRefused, server)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath(machine.PathHealth).String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+ticket)
	// No proxy: who installed the node is on its own network.
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	if err != nil {
		return fmt.Errorf("telling that this node is ready: %w", err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	switch resp.StatusCode / 100 {
	case 2:
		return nil
	case 4:
		return fmt.Errorf("%s %w it: %s", base.Host, ErrRefused, strings.TrimSpace(string(text)))
	}
	return fmt.Errorf("telling that this node is ready: %s answered %s", base.Host, resp.Status)
}

// Remember notes at path that the node was heard. A node that is installed again
// has another ticket, and tells again even when its state was kept.
func Remember(path string, h machine.Home) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("remembering who was told: %w", err)
	}
	if err := renameio.WriteFile(path, []byte(mark(h)), 0o644); err != nil {
		return fmt.Errorf("remembering who was told: %w", err)
	}
	return nil
}

// Remembered reports whether the node was heard since it was installed.
func Remembered(path string, h machine.Home) bool {
	data, err := os.ReadFile(path)
	return err == nil && string(data) == mark(h)
}

// mark names an install without giving its ticket away.
func mark(h machine.Home) string { return digest.Of([]byte(h.Ticket)).String() + "\n" }
