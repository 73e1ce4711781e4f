package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stale is how long it is believed that the server does not know a kind. Kinds come
// while we wait: operators define some of them.
const stale = 2 * time.Second

// kinds remembers which kinds the server knows, and asks again when one is missing
// that may have come since it last asked.
type kinds struct {
	meta.ResettableRESTMapper
	mu    sync.Mutex
	asked time.Time
}

// RESTMapping finds how a kind is reached.
func (k *kinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m, err := k.ResettableRESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) || !k.again() {
		return m, err
	}
	return k.ResettableRESTMapper.RESTMapping(kind, versions...)
}

// again forgets what is remembered, if it is old enough.
func (k *kinds) again() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.asked) < stale {
		return false
	}
	k.asked = time.Now()
	k.ResettableRESTMapper.Reset()
	return true
}
