package cilium

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cilium/cilium/api/v1/client/daemon"
	"github.com/cilium/cilium/api/v1/models"
	"github.com/cilium/cilium/pkg/client"

	"github.com/slipway/slipway/internal/sequence"
)

// answerTime bounds one question to an agent.
const answerTime = 15 * time.Second

// healthy asks the agent on a node about itself. The DaemonSet knows only that a
// probe was answered; the agent knows whether it has an API server, replaces
// kube-proxy and programs the datapath.
func healthy(ctx context.Context, node string, dial Agent) []sequence.Change {
	status, err := ask(ctx, node, dial)
	if err != nil {
		return await("agent on "+node, "does not answer: "+err.Error())
	}
	if why := unwell(status); why != "" {
		return await("agent on "+node, why)
	}
	return nil
}

// ask reads the agent's status over a stream of dial's.
func ask(ctx context.Context, node string, dial Agent) (*models.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	agent, err := client.NewClient("unix://" + SocketPath)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, node) }}
	defer transport.CloseIdleConnections()
	question := daemon.NewGetHealthzParamsWithContext(ctx).WithHTTPClient(&http.Client{Transport: transport})
	answer, err := agent.Daemon.GetHealthz(question)
	if err != nil {
		return nil, client.Hint(err)
	}
	return answer.Payload, nil
}

// unwell says what an agent complains of; empty for one that is healthy. A warning
// about a single controller is no reason: agents repeat what fails.
func unwell(s *models.StatusResponse) string {
	if s == nil || s.Cilium == nil {
		return "says nothing about itself"
	}
	var reasons []string
	if c := s.Cilium; c.State != models.StatusStateOk {
		reasons = append(reasons, words(c.State, c.Msg))
	}
	if k := s.Kubernetes; k != nil && k.State != models.K8sStatusStateOk {
		reasons = append(reasons, "Kubernetes: "+words(k.State, k.Msg))
	}
	if r := s.KubeProxyReplacement; r == nil || r.Mode != models.KubeProxyReplacementModeTrue {
		reasons = append(reasons, "it does not replace kube-proxy")
	}
	return strings.Join(reasons, "; ")
}

func words(state, msg string) string {
	if msg == "" {
		return state
	}
	return fmt.Sprintf("%s: %s", state, msg)
}
