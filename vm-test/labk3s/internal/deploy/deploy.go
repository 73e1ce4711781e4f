// Package deploy applies the manifests in a server's directory server/manifests, as
// k3s does: what is put there is in the cluster soon after, and again when it changes.
// A file whose removal is wanted has to be undone by hand; k3s deletes nothing either.
package deploy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// look is how often the directory is looked at.
const look = 15 * time.Second

// manager is the owner of the fields that manifests set.
const manager = "deploy@labk3s"

// Deployer applies the manifests of a directory.
type Deployer struct {
	dir     string
	client  dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	applied map[string][sha256.Size]byte // by path, what was applied without an error
}

// New makes a deployer that acts as the administrator of the configuration.
func New(dir string, c *rest.Config) (*Deployer, error) {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return &Deployer{dir: dir, client: client, mapper: mapper, applied: map[string][sha256.Size]byte{}}, nil
}

// Run applies what is new until ctx ends.
func (d *Deployer) Run(ctx context.Context) {
	for {
		if err := d.sweep(ctx); err != nil && ctx.Err() == nil {
			slog.Error("Failed to process config", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(look):
		}
	}
}

// sweep applies every file that has changed. One that fails does not hold up others,
// and is tried again the next time.
func (d *Deployer) sweep(ctx context.Context) error {
	var errs []error
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !wanted(path) {
			return err
		}
		if err := d.file(ctx, path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// wanted reports whether a file is a manifest, and none that is to be left alone:
// beside x.yaml, x.yaml.skip says so.
func wanted(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		_, err := os.Stat(path + ".skip")
		return err != nil
	}
	return false
}

func (d *Deployer) file(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	if d.applied[path] == sum {
		return nil
	}
	objects, err := objectsOf(text)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := d.apply(ctx, o); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	slog.Info("Applied manifest", "file", path, "objects", len(objects))
	d.applied[path] = sum
	return nil
}

// objectsOf splits a file into its objects; lists count as what is in them.
func objectsOf(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) == 0 {
			continue
		}
		if !o.IsList() {
			out = append(out, o)
			continue
		}
		err = o.EachListItem(func(item runtime.Object) error {
			out = append(out, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}

func (d *Deployer) apply(ctx context.Context, o *unstructured.Unstructured) error {
	gvk := o.GroupVersionKind()
	mapping, err := d.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		d.mapper.Reset() // a CustomResourceDefinition may have come since
		return err
	}
	doc, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	namespaced := d.client.Resource(mapping.Resource)
	var target dynamic.ResourceInterface = namespaced
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		target = namespaced.Namespace(namespaceOf(o))
	}
	force := true
	_, err = target.Patch(ctx, o.GetName(), types.ApplyPatchType, doc, metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}

func namespaceOf(o *unstructured.Unstructured) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns
	}
	return metav1.NamespaceDefault
}
