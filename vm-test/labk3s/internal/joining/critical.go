package joining

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/slipway/slipway/vm-test/labk3s/internal/settings"
)

// ConfigPath is where a server tells what it is configured like.
const ConfigPath = "/v1-k3s/config"

// Critical are the settings that all servers must have alike, and what an agent
// needs to know of them. The flag of each stands beside it.
type Critical struct {
	ClusterDNS            string `flag:"cluster-dns"`
	ClusterDomain         string `flag:"cluster-domain"`
	ClusterIPRanges       string `flag:"cluster-cidr"`
	ServiceIPRanges       string `flag:"service-cidr"`
	DisableCCM            bool   `flag:"disable-cloud-controller"`
	DisableHelmController bool   `flag:"disable-helm-controller"`
	DisableKubeProxy      bool   `flag:"disable-kube-proxy"`
	DisableNPC            bool   `flag:"disable-network-policy"`
	EncryptSecrets        bool   `flag:"secrets-encryption"`
	FlannelBackend        string `flag:"flannel-backend"`
	EgressSelectorMode    string `flag:"egress-selector-mode"`
}

// CriticalOf are the critical settings of a server.
func CriticalOf(s settings.Settings) Critical {
	return Critical{
		ClusterDNS: s.ClusterDNS, ClusterDomain: s.ClusterDomain,
		ClusterIPRanges: s.ClusterCIDR, ServiceIPRanges: s.ServiceCIDR,
		DisableCCM: s.DisableCCM, DisableHelmController: s.DisableHelm,
		DisableKubeProxy: s.DisableKubeProxy, DisableNPC: s.DisableNetworkPolicy,
		EncryptSecrets: s.SecretsEncryption, FlannelBackend: s.FlannelBackend,
		EgressSelectorMode: s.EgressSelectorMode,
	}
}

// Differences are the flags in which two servers differ.
func (c Critical) Differences(other Critical) []string {
	var out []string
	mine, theirs := reflect.ValueOf(c), reflect.ValueOf(other)
	for i := range mine.NumField() {
		if !mine.Field(i).Equal(theirs.Field(i)) {
			out = append(out, mine.Type().Field(i).Tag.Get("flag"))
		}
	}
	return out
}

// Critical asks the server for its critical settings.
func (s *Server) Critical(ctx context.Context) (Critical, error) {
	var c Critical
	doc, err := s.Get(ctx, ConfigPath)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(doc, &c); err != nil {
		return c, fmt.Errorf("reading the configuration of %s: %w", s.url, err)
	}
	return c, nil
}

// Compare refuses a server of other critical settings than ours.
func (s *Server) Compare(ctx context.Context, ours Critical) error {
	theirs, err := s.Critical(ctx)
	if err != nil {
		return err
	}
	flags := ours.Differences(theirs)
	if len(flags) == 0 {
		return nil
	}
	slog.Error("critical configuration mismatched: " + strings.Join(flags, ", "))
	return errors.New("critical configuration value mismatch between servers")
}
