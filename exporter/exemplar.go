package exporter

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/locksteward/locksteward"
)

// observeHold counts the length of an ended hold. Where the holder left the trace
// of its acquire, the trace stands beside the bucket as an exemplar, so that a slow
// hold leads to its request.
func observeHold(h prometheus.Histogram, held time.Duration, claim *locksteward.Claim) {
	if claim != nil {
		if id, ok := traceID(claim.Trace); ok {
			if with, can := h.(prometheus.ExemplarObserver); can {
				with.ObserveWithExemplar(held.Seconds(), prometheus.Labels{"trace_id": id})
				return
			}
		}
	}
	h.Observe(held.Seconds())
}

// traceID takes the trace from a traceparent of W3C Trace Context, version 00 or
// later: version-trace-parent-flags in small hexadecimal digits, none of the two
// ids all zero. Foreign bytes are no trace.
func traceID(traceparent string) (string, bool) {
	const version, trace, parent, all = 2, 32, 16, 55
	if len(traceparent) < all || len(traceparent) > 4*all {
		return "", false
	}
	rest, more := traceparent[:all], traceparent[all:]
	parts := strings.Split(rest, "-")
	if len(parts) != 4 || len(parts[0]) != version || len(parts[1]) != trace || len(parts[2]) != parent || len(parts[3]) != 2 {
		return "", false
	}
	for _, p := range parts {
		if strings.Trim(p, "0123456789abcdef") != "" {
			return "", false
		}
	}
	known := parts[0] == "00" && more == ""
	later := parts[0] > "00" && parts[0] != "ff" && (more == "" || more[0] == '-')
	if !known && !later || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return "", false
	}
	return parts[1], true
}
