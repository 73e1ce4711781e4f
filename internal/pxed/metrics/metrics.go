// Package metrics counts what pxed does and shows it to Prometheus.
package metrics

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the numbers of one pxed.
type Metrics struct {
	registry *prometheus.Registry
	boots    *prometheus.CounterVec
	dhcp     *prometheus.CounterVec
	tftp     *prometheus.CounterVec
	loaded   prometheus.Counter
	refusals *prometheus.CounterVec
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// States counts the machines in each state, when asked.
type States func(ctx context.Context) (map[string]int, error)

// New returns metrics that start at zero.
func New(states States) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		boots:    counter("slipway_boots_total", "Boot requests by what they got.", "action"),
		dhcp:     counter("slipway_dhcp_total", "DHCP requests by firmware and what they got.", "firmware", "gave"),
		tftp:     counter("slipway_tftp_total", "TFTP requests by outcome.", "outcome"),
		loaded:   prometheus.NewCounter(prometheus.CounterOpts{Name: "slipway_tftp_bytes_total", Help: "Bytes sent by TFTP."}),
		refusals: counter("slipway_refusals_total", "Refused requests by the code of the refusal.", "code"),
		requests: counter("slipway_http_requests_total", "HTTP requests by route and status.", "route", "status"),
		bytes:    counter("slipway_http_bytes_total", "Bytes of HTTP answers by route.", "route"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "slipway_http_seconds", Help: "Time of HTTP answers by route.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"route"}),
	}
	m.registry.MustRegister(m.boots, m.dhcp, m.tftp, m.loaded, m.refusals, m.requests, m.bytes, m.seconds, &machines{states},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Refused counts a refusal.
func (m *Metrics) Refused(code string) { m.refusals.WithLabelValues(code).Inc() }

// Booted counts a boot request.
func (m *Metrics) Booted(action string) { m.boots.WithLabelValues(action).Inc() }

// DHCP counts a DHCP request.
func (m *Metrics) DHCP(firmware, gave string) { m.dhcp.WithLabelValues(firmware, gave).Inc() }

// TFTP counts a TFTP transfer.
func (m *Metrics) TFTP(outcome string, bytes int) {
	m.tftp.WithLabelValues(outcome).Inc()
	m.loaded.Add(float64(bytes))
}

// Served counts an HTTP request. The route is a pattern of the server, so that
// there are only so many; "" is a path that nobody serves.
func (m *Metrics) Served(route string, status int, bytes int64, took time.Duration) {
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.bytes.WithLabelValues(route).Add(float64(bytes))
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// Handler serves the numbers in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// machines asks for the states when the numbers are read: a count kept beside the
// ledger would be wrong after a restart.
type machines struct{ states States }

// Describe implements prometheus.Collector.
func (c *machines) Describe(ch chan<- *prometheus.Desc) { ch <- describe() }

func describe() *prometheus.Desc {
	return prometheus.NewDesc("slipway_machines", "Machines by state.", []string{"state"}, nil)
}

// Collect implements prometheus.Collector.
func (c *machines) Collect(ch chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	states, err := c.states(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(describe(), err)
		return
	}
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(describe(), prometheus.GaugeValue, float64(n), state)
	}
}
